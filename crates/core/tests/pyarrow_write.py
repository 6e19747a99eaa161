"""Writes Parquet files with pyarrow into the folder given, and says on standard output what is in them.

One line a file: its name, its rows, the sum and the nulls of its column `i64`, separated by tabs.
Encrypted files carry key metadata of a test KMS that wraps a key by base64.
"""

import base64
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe

ROWS = 20_000


def table() -> pa.Table:
    ids = range(ROWS)

    def some(value):
        return [None if i % 5 == 0 else value(i) for i in ids]

    return pa.table(
        {
            "i64": pa.array(some(lambda i: i * 3), pa.int64()),
            "i32": pa.array(list(ids), pa.int32()),
            "f32": pa.array(some(lambda i: i / 7), pa.float32()),
            "bool": pa.array(some(lambda i: i % 3 == 0)),
            "text": pa.array(some(lambda i: f"value {i % 1000}")),
            "unique": pa.array(some(lambda i: f"a longer and unique value {i}")),
            "time": pa.array(some(lambda i: i * 1_000_000), pa.timestamp("us", "UTC")),
            "decimal": pa.array(some(lambda i: i), pa.decimal128(20, 0)),
            "fixed": pa.array(some(lambda i: i.to_bytes(8, "big")), pa.binary(8)),
            "list": pa.array(some(lambda i: list(range(i % 4))), pa.list_(pa.int32())),
            "struct": pa.array(
                some(lambda i: {"a": i, "b": str(i)}),
                pa.struct([("a", pa.int64()), ("b", pa.string())]),
            ),
            "map": pa.array(
                some(lambda i: [("k", i)]), pa.map_(pa.string(), pa.int64())
            ),
        }
    )


class TestKms(pe.KmsClient):
    """Wraps a key by base64, which protects nothing: a test has nothing to protect."""

    def __init__(self, _config):
        super().__init__()

    def wrap_key(self, key_bytes, _master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, _master_key_identifier):
        return base64.b64decode(wrapped_key)


def encryption(**options):
    factory = pe.CryptoFactory(TestKms)
    configuration = pe.EncryptionConfiguration(
        footer_key="test", double_wrapping=False, **options
    )
    return factory.file_encryption_properties(pe.KmsConnectionConfig(), configuration)


def main(folder: Path) -> None:
    data = table()
    files = {}
    for codec in ["none", "snappy", "gzip", "brotli", "zstd", "lz4"]:
        for version in ["1.0", "2.0"]:
            files[f"{codec}-v{version}"] = {
                "compression": codec,
                "data_page_version": version,
            }
    plain = {"use_dictionary": False, "data_page_size": 16_384}
    files["plain"] = plain
    files["required-statistics"] = {"write_statistics": True, "write_page_index": True}
    files["checksums"] = {"write_page_checksum": True, **plain}
    files["delta"] = {
        "use_dictionary": False,
        "column_encoding": {"i64": "DELTA_BINARY_PACKED", "unique": "DELTA_BYTE_ARRAY"},
    }
    for bits in [128, 256]:
        for name, options in {"dictionary": {}, "plain": plain}.items():
            files[f"uniform-{name}-{bits}.encrypted"] = {
                "encryption_properties": encryption(
                    uniform_encryption=True, data_key_length_bits=bits
                ),
                "compression": "snappy",
                **options,
            }
    files["checksums.encrypted"] = {
        "encryption_properties": encryption(uniform_encryption=True),
        "write_page_checksum": True,
    }
    files["plaintext-footer.encrypted"] = {
        "encryption_properties": encryption(uniform_encryption=True, plaintext_footer=True),
    }
    files["columns.encrypted"] = {
        "encryption_properties": encryption(
            column_keys={"other": ["i64", "unique"]}, data_key_length_bits=128
        ),
    }
    for name, options in files.items():
        pq.write_table(data, folder / f"{name}.parquet", row_group_size=7_000, **options)
        column = data["i64"]
        print(name, data.num_rows, pc.sum(column).as_py(), column.null_count, sep="\t")


main(Path(sys.argv[1]))
