"""Reads Parquet files with pyarrow and writes what it saw as plain Parquet.

Arguments: KEYS IN OUT, where KEYS is one of
  none    the file is not encrypted
  kms     the keys are asked of a test KMS, by the file's own key metadata
  TEXT    the footer key itself
"""

import base64
import sys

import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe


class TestKms(pe.KmsClient):
    """Wraps a key by base64: it protects nothing."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return base64.b64encode(key_bytes)

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return base64.b64decode(wrapped_key)


def decryption_properties(keys):
    if keys == "none":
        return None
    if keys == "kms":
        factory = pe.CryptoFactory(lambda _: TestKms())
        return factory.file_decryption_properties(pe.KmsConnectionConfig())
    return pe.create_decryption_properties(footer_key=keys.encode())


def main():
    keys, source, target = sys.argv[1:]
    file = pq.ParquetFile(source, decryption_properties=decryption_properties(keys))
    table = file.read()
    # Reads every page once more, by itself: a row group's columns one at a time.
    for row_group in range(file.num_row_groups):
        for column in table.column_names:
            file.read_row_group(row_group, columns=[column])
    pq.write_table(table, target, compression="none", use_dictionary=False, store_schema=False)
    print(file.metadata.num_rows, file.metadata.created_by)


main()
