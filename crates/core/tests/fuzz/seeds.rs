//! What hostile files are made from: a small file for every codec, page version, dictionary and encryption, and small real
//! ones.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use alloquet_core::stages;
use arrow_array::builder::{ListBuilder, MapBuilder, StringBuilder, UInt32Builder};
use arrow_array::{
    ArrayRef, BooleanArray, Decimal128Array, FixedSizeBinaryArray, Float32Array, Int32Array,
    Int64Array, RecordBatch, StringArray, StringViewArray,
};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderMetadata, ArrowReaderOptions};
use parquet::basic::{Compression, Encoding};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::{WriterProperties, WriterVersion};

/// Keys of the generated files and of apache/parquet-testing's.
const FOOTER_KEY: &[u8] = b"0123456789012345";
const COLUMN_KEYS: [(&str, &[u8]); 2] = [
    ("double_field", b"1234567890123450"),
    ("float_field", b"1234567890123451"),
];

/// A file that can be read.
pub(crate) struct Seed {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) keys: Option<Arc<FileDecryptionProperties>>,
    pub(crate) metadata: ArrowReaderMetadata,
    /// Whether all of it is encrypted, so that no change can go unnoticed.
    pub(crate) authenticated: bool,
}

impl Seed {
    /// `None` where the parquet crate cannot open the file.
    fn open(
        name: String,
        bytes: Vec<u8>,
        keys: Option<Arc<FileDecryptionProperties>>,
    ) -> Option<Self> {
        let metadata =
            ArrowReaderMetadata::load(&Bytes::from(bytes.clone()), options(keys.as_ref())).ok()?;
        let authenticated = bytes.ends_with(b"PARE")
            && metadata.metadata().row_groups().iter().all(|row_group| {
                let chunks = row_group.columns();
                chunks.iter().all(|chunk| chunk.crypto_metadata().is_some())
            });
        Some(Self {
            name,
            bytes,
            keys,
            metadata,
            authenticated,
        })
    }

    pub(crate) fn options(&self) -> ArrowReaderOptions {
        options(self.keys.as_ref())
    }

    fn uncompressed_bytes(&self) -> u64 {
        let row_groups = self.metadata.metadata().row_groups().iter();
        let chunks = row_groups.flat_map(|row_group| row_group.columns());
        chunks.map(|chunk| chunk.uncompressed_size() as u64).sum()
    }

    /// Where the footer starts.
    pub(crate) fn footer_start(&self) -> usize {
        let tail = self.bytes.len() - 8;
        let len = self.bytes[tail..].first_chunk::<4>().unwrap();
        tail - u32::from_le_bytes(*len) as usize
    }
}

fn options(keys: Option<&Arc<FileDecryptionProperties>>) -> ArrowReaderOptions {
    match keys {
        Some(keys) => ArrowReaderOptions::new().with_file_decryption_properties(Arc::clone(keys)),
        None => ArrowReaderOptions::new(),
    }
}

/// Every seed, made once.
pub(crate) fn all() -> &'static [Seed] {
    static SEEDS: OnceLock<Vec<Seed>> = OnceLock::new();
    SEEDS.get_or_init(|| {
        let mut seeds = generated();
        if let Some(folder) = std::env::var_os("PARQUET_TEST_DATA") {
            let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
            seeds.extend(real(&workspace.join(folder)));
        } else {
            assert!(
                std::env::var_os("CI").is_none(),
                "PARQUET_TEST_DATA must name the data folder of apache/parquet-testing in CI"
            );
            eprintln!("without the files of PARQUET_TEST_DATA");
        }
        seeds
    })
}

const ROWS: i32 = 24;

/// A column for each way to decode.
fn table() -> RecordBatch {
    let some = |i: i32| (i % 5 != 0).then_some(i);
    let text = |i: i32| some(i).map(|i| format!("value {}", i % 7));
    let mut list = ListBuilder::new(UInt32Builder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), UInt32Builder::new());
    for i in 0..ROWS {
        for item in 0..i % 4 {
            list.values().append_option((item != 2).then_some(i as u32));
        }
        list.append(i % 7 != 0);
        map.keys().append_value(format!("k{}", i % 3));
        map.values().append_option(some(i).map(|i| i as u32));
        map.append(true).unwrap();
    }
    let fixed = (0..ROWS).map(|i| some(i).map(|i| i.to_be_bytes()));
    let fixed = FixedSizeBinaryArray::try_from_sparse_iter_with_size(fixed, 4).unwrap();
    let ids = || 0..ROWS;
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int32Array::from_iter_values(ids()))),
        (
            "i64",
            Arc::new(
                ids()
                    .map(|i| some(i).map(i64::from))
                    .collect::<Int64Array>(),
            ),
        ),
        (
            "bool",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i % 2 == 0))
                    .collect::<BooleanArray>(),
            ),
        ),
        (
            "f32",
            Arc::new(Float32Array::from_iter_values(ids().map(|i| i as f32))),
        ),
        (
            "split",
            Arc::new(
                ids()
                    .map(|i| some(i).map(|i| i as f32))
                    .collect::<Float32Array>(),
            ),
        ),
        (
            "decimal",
            Arc::new(
                ids()
                    .map(|i| some(i).map(i128::from))
                    .collect::<Decimal128Array>()
                    .with_precision_and_scale(20, 2)
                    .unwrap(),
            ),
        ),
        ("utf8", Arc::new(ids().map(text).collect::<StringArray>())),
        (
            "view",
            Arc::new(ids().map(text).collect::<StringViewArray>()),
        ),
        (
            "lengths",
            Arc::new(ids().map(text).collect::<StringArray>()),
        ),
        ("fixed", Arc::new(fixed)),
        ("list", Arc::new(list.finish())),
        ("map", Arc::new(map.finish())),
    ];
    RecordBatch::try_from_iter(columns).unwrap()
}

fn encryption(columns: bool) -> (Arc<FileEncryptionProperties>, Arc<FileDecryptionProperties>) {
    let mut encrypt = FileEncryptionProperties::builder(FOOTER_KEY.to_vec());
    let mut decrypt = FileDecryptionProperties::builder(FOOTER_KEY.to_vec());
    if columns {
        // Some columns with a key of their own, the others not at all, and a footer that is only signed.
        let key = b"abcdefghijklmnopabcdefghijklmnop";
        for column in ["id", "utf8", "list.list.item"] {
            encrypt = encrypt.with_column_key(column, key.to_vec());
            decrypt = decrypt.with_column_key(column, key.to_vec());
        }
        encrypt = encrypt.with_plaintext_footer(true);
    }
    (encrypt.build().unwrap(), decrypt.build().unwrap())
}

fn generated() -> Vec<Seed> {
    let table = table();
    let mut seeds = Vec::new();
    for codec in [
        Compression::UNCOMPRESSED,
        Compression::SNAPPY,
        Compression::ZSTD(Default::default()),
        Compression::LZ4_RAW,
        Compression::LZ4,
        Compression::GZIP(Default::default()),
        Compression::BROTLI(Default::default()),
    ] {
        for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
            for dictionary in [false, true] {
                for encrypted in [false, true] {
                    let mut properties = WriterProperties::builder()
                        .set_compression(codec)
                        .set_writer_version(version)
                        .set_dictionary_enabled(dictionary)
                        .set_data_page_row_count_limit(8)
                        .set_write_batch_size(8)
                        .set_max_row_group_row_count(Some(16));
                    if !dictionary {
                        for (column, encoding) in [
                            ("split", Encoding::BYTE_STREAM_SPLIT),
                            ("lengths", Encoding::DELTA_LENGTH_BYTE_ARRAY),
                        ] {
                            properties = properties.set_column_encoding(column.into(), encoding);
                        }
                    }
                    let mut keys = None;
                    if encrypted {
                        let (encrypt, decrypt) = encryption(dictionary);
                        properties = properties.with_file_encryption_properties(encrypt);
                        keys = Some(decrypt);
                    }
                    let mut bytes = Vec::new();
                    let mut writer =
                        ArrowWriter::try_new(&mut bytes, table.schema(), Some(properties.build()))
                            .unwrap();
                    writer.write(&table).unwrap();
                    writer.close().unwrap();
                    let name = format!(
                        "{codec} {version:?}{}{}",
                        if dictionary { " dictionary" } else { "" },
                        if encrypted { " encrypted" } else { "" },
                    );
                    seeds.push(Seed::open(name, bytes, keys).unwrap());
                }
            }
        }
    }
    seeds
}

/// Real files that are larger change too seldom where it matters.
const LARGEST: u64 = 8 << 10;

fn real(folder: &Path) -> Vec<Seed> {
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.metadata().unwrap().len() <= LARGEST)
        .collect();
    paths.sort();
    let seeds: Vec<_> = paths
        .iter()
        .filter_map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let keys = name.ends_with(".encrypted").then(|| {
                let mut keys = FileDecryptionProperties::builder(FOOTER_KEY.to_vec());
                for (column, key) in COLUMN_KEYS {
                    keys = keys.with_column_key(column, key.to_vec());
                }
                if name.contains("disable_aad_storage") {
                    keys = keys.with_aad_prefix(b"tester".to_vec());
                }
                keys.build().unwrap()
            });
            let is_parquet = name.ends_with(".parquet") || keys.is_some();
            let seed =
                is_parquet.then(|| Seed::open(name, std::fs::read(path).unwrap(), keys))??;
            (seed.uncompressed_bytes() <= 32 * LARGEST).then_some(seed)
        })
        .collect();
    assert!(seeds.len() >= 40, "{} small files", seeds.len());
    seeds
}

/// Every page header of the files that are not encrypted.
pub(crate) fn headers() -> &'static [Vec<u8>] {
    static HEADERS: OnceLock<Vec<Vec<u8>>> = OnceLock::new();
    HEADERS.get_or_init(|| {
        let mut headers = Vec::new();
        for seed in all().iter().filter(|seed| seed.keys.is_none()) {
            for row_group in seed.metadata.metadata().row_groups() {
                for chunk in row_group.columns() {
                    let (start, len) = chunk.byte_range();
                    let mut rest = &seed.bytes[start as usize..][..len as usize];
                    while let Ok(Some(header)) = stages::parse_header(rest) {
                        headers.push(rest[..header.len].to_vec());
                        rest = rest.get(header.len + header.stored_bytes..).unwrap_or(&[]);
                    }
                }
            }
        }
        headers.sort();
        headers.dedup();
        assert!(headers.len() > 200, "{} headers", headers.len());
        headers
    })
}
