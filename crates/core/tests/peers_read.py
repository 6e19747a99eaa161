"""Reads Parquet files of two folders with pyarrow and with DuckDB: what they find in a file of the
first folder must be what they find in the file of the same name in the second.

The second folder's files are the parquet crate's own, of the same batches. On standard output comes
one line of JSON a file, of how much was compared, and one of the totals. Differences go to standard
error, and the exit status is 1.
"""

import json
import sys
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

# What a reader cannot take, as it says so itself, and the columns that it may say so of. Where it takes
# the parquet crate's file, it must take ours.
PYARROW_CANNOT = {
    # A dictionary type, in pages of differences of bytes.
    "Not yet implemented: DecodeArrow of DictAccumulator": {"dictionary"},
}
SPLIT = {"f16", "fixed_7", "decimal128_16", "decimal256_32", "interval_ym", "interval_dt"}
NESTED = {"list", "large_list", "fixed_list", "lists", "list_of_structs", "struct", "map"}
DUCKDB_CANNOT = {
    # Bytes apart of other than numbers of 4 and 8 bytes.
    "BYTE_STREAM_SPLIT encoding is only supported for": SPLIT,
    # Hadoop's LZ4, an empty page of which it does not take, where a nested column is null throughout.
    "LZ4 decompression failure": NESTED,
}

# Columns whose values are looked for, with how SQL says a value.
LOOKED_FOR = {
    "i64": str,
    "utf8": lambda text: "'" + text.replace("'", "''") + "'",
    "i16": str,
    "u32": str,
    "large_utf8": lambda text: "'" + text.replace("'", "''") + "'",
    "decimal128_8": lambda number: f"{number}::DECIMAL(16, 2)",
    "date32": lambda date: f"'{date}'::DATE",
    "bool": str,
}
# Those of them that DuckDB asks bloom filters of.
PROBED = ["i64", "utf8", "i16", "u32", "large_utf8"]
ABSENT = {"i64": [3, -(2**40) - 7], "utf8": ["absent", "zzz"]}


class Different(Exception):
    """A file says something else than the one it is compared with."""


def same(what: str, ours, theirs) -> None:
    if ours != theirs:
        raise Different(f"{what}: {ours!r}, not {theirs!r}")


def divided(names: list[str], cannot: dict[str, set[str]], read: list) -> tuple[list, dict]:
    """The columns that a reader takes of both files; those that it takes of neither, and why."""
    readable, skipped = [], {}
    for name in names:
        if not any(name in of for of in cannot.values()):
            readable.append(name)
            continue
        reasons = []
        for reader in read:
            try:
                reader(name)
                reasons.append(None)
            except (OSError, pa.ArrowException, duckdb.Error) as error:
                said = str(error)
                known = [part for part, of in cannot.items() if part in said and name in of]
                reasons.append(known[0] if known else said)
        same(f"what a reader says of {name}", *reasons)
        if reasons[0] is None:
            readable.append(name)
        elif reasons[0] in cannot:
            skipped[name] = reasons[0]
        else:
            raise Different(f"neither file's {name} can be read: {reasons[0]}")
    return readable, skipped


def bits(column: pa.ChunkedArray) -> pa.Array:
    """The column such that equal means equal bits: a NaN is as good as its like, and -0.0 is not 0.0."""
    array = column.combine_chunks()
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], array.type)
    # Dictionaries may be cut differently from page to page.
    if pa.types.is_dictionary(array.type):
        array = array.cast(array.type.value_type)
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    for floats, integers in {
        pa.float16(): pa.int16(),
        pa.float32(): pa.int32(),
        pa.float64(): pa.int64(),
    }.items():
        if array.type == floats:
            array = array.view(integers)
    return array


def statistics(column: pq.ColumnChunkMetaData) -> dict | None:
    if not column.is_stats_set:
        return None
    found = column.statistics
    said = {
        name: getattr(found, name)
        for name in [
            "has_min_max",
            "has_null_count",
            "null_count",
            "has_distinct_count",
            "distinct_count",
            "num_values",
            "physical_type",
            "is_min_exact",
            "is_max_exact",
        ]
        if hasattr(found, name)
    }
    if found.has_min_max:
        # `repr`, because -0.0 is not 0.0.
        said["raw"] = repr((found.min_raw, found.max_raw))
        try:
            said["logical"] = repr((found.min, found.max))
        except (NotImplementedError, ValueError, OverflowError, pa.ArrowException):
            # Values that Python has no type for; what is stored is compared above.
            pass
    return said


def with_pyarrow(ours: Path, theirs: Path) -> tuple[dict, pa.Table]:
    a, b = pq.ParquetFile(ours), pq.ParquetFile(theirs)
    same("rows", a.metadata.num_rows, b.metadata.num_rows)
    same("row groups", a.num_row_groups, b.num_row_groups)
    same("file version", a.metadata.format_version, b.metadata.format_version)
    same("key-value metadata", a.metadata.metadata, b.metadata.metadata)
    if not a.schema.equals(b.schema):
        raise Different(f"Parquet schema: {a.schema}, not {b.schema}")
    if not a.schema_arrow.equals(b.schema_arrow, check_metadata=True):
        raise Different(f"Arrow schema: {a.schema_arrow}, not {b.schema_arrow}")

    readable, skipped = divided(
        a.schema_arrow.names, PYARROW_CANNOT, [lambda name, f=f: f.read([name]) for f in (a, b)]
    )
    tables = [file.read(readable, use_threads=False) for file in (a, b)]
    for table in tables:
        table.validate(full=True)
    for name in readable:
        found, expected = (bits(table[name]) for table in tables)
        found.validate(full=True)
        if not found.equals(expected):
            raise Different(f"pyarrow: {name}: {found}, not {expected}")

    compared = 0
    for group in range(a.num_row_groups):
        ours_group, theirs_group = a.metadata.row_group(group), b.metadata.row_group(group)
        same("rows of a row group", ours_group.num_rows, theirs_group.num_rows)
        same("sorting columns", ours_group.sorting_columns, theirs_group.sorting_columns)
        for i in range(a.metadata.num_columns):
            x, y = ours_group.column(i), theirs_group.column(i)
            for fact in [
                "path_in_schema",
                "physical_type",
                "num_values",
                "compression",
                "has_dictionary_page",
                "has_column_index",
                "has_offset_index",
                "is_stats_set",
            ]:
                what = f"row group {group}: {y.path_in_schema}: {fact}"
                same(what, getattr(x, fact), getattr(y, fact))
            expected = statistics(y)
            what = f"row group {group}: {y.path_in_schema}: statistics"
            same(what, statistics(x), expected)
            compared += expected is not None
    said = {
        "rows": tables[0].num_rows,
        "row_groups": a.num_row_groups,
        "columns": len(readable),
        "leaves": a.metadata.num_columns,
        "skipped": skipped,
        "statistics": compared,
    }
    return said, tables[1]


def rows_with(column: pa.ChunkedArray, value) -> list[int]:
    """Where a value is, by pyarrow's reading of the expected file."""
    mask = pc.fill_null(pc.equal(column, pa.scalar(value, column.type)), False)
    return pc.indices_nonzero(mask).to_pylist()


def values_of(table: pa.Table, name: str) -> list:
    """Some values that a column has: of its first, middle and last rows."""
    there = table[name].drop_null()
    at = [0, len(there) // 2, len(there) - 1] if len(there) else []
    return list(dict.fromkeys(there[i].as_py() for i in at))


def looked_for(table: pa.Table):
    """Names of columns, and values to look for in them, with whether they are there."""
    for name in LOOKED_FOR:
        for value in values_of(table, name) + ABSENT.get(name, []):
            yield name, value, rows_with(table[name], value)


def with_filters_of_pyarrow(ours: Path, table: pa.Table) -> int:
    found = 0
    for name, value, rows in looked_for(table):
        # A schema of that column only: pyarrow cannot filter views, of which there are some.
        schema = pa.schema([table.field(name)])
        condition = pc.field(name) == pa.scalar(value, table[name].type)
        filtered = pq.read_table(ours, schema=schema, filters=condition)
        same(f"pyarrow: rows where {name} = {value!r}", filtered.num_rows, len(rows))
        found += len(rows)
    return found


def sql(path: Path) -> str:
    return "'" + str(path).replace("'", "''") + "'"


def quoted(names: list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


def bloom_filters(rows, path: Path) -> dict[tuple, bytes]:
    """The bits of bloom filters, where DuckDB says they are: a short header comes first, and then blocks
    of 32 bytes whose number is a power of two."""
    data = path.read_bytes()
    chunks = rows(
        "SELECT row_group_id, path_in_schema, bloom_filter_offset, bloom_filter_length "
        f"FROM parquet_metadata({sql(path)}) WHERE bloom_filter_offset IS NOT NULL ORDER BY ALL"
    )
    filters = {}
    for group, column, offset, length in chunks:
        bits = 1 << (length.bit_length() - 1)
        filters[group, column] = data[offset + length - bits : offset + length]
    return filters


def same_bloom(a: bytes, b: bytes) -> bool:
    """Whether two filters hold the same values. Their sizes may differ: then the larger one, its blocks
    put together until there are as many as in the other, is the other."""
    a, b = sorted([a, b], key=len)
    blocks = [int.from_bytes(b[at : at + 32]) for at in range(0, len(b), 32)]
    while len(blocks) * 32 > len(a):
        blocks = [x | y for x, y in zip(blocks[::2], blocks[1::2])]
    return b"".join(block.to_bytes(32) for block in blocks) == a


def with_duckdb(db, ours: Path, theirs: Path, table: pa.Table, names: list[str]) -> dict:
    # The numbers of rows come along, so that the same rows in another order are not the same.
    a, b = (f"read_parquet({sql(path)}, file_row_number = true)" for path in (ours, theirs))

    def rows(query: str) -> list[tuple]:
        return db.execute(query).fetchall()

    described = [rows(f"DESCRIBE SELECT * FROM {file}") for file in (a, b)]
    same("DuckDB: columns", *described)
    readable, skipped = divided(
        names,
        DUCKDB_CANNOT,
        [lambda name, f=f: rows(f'SELECT max(hash("{name}")) FROM {f}') for f in (a, b)],
    )
    columns = quoted(readable + ["file_row_number"])
    counts = [rows(f"SELECT count(*) FROM {file}")[0][0] for file in (a, b)]
    same("DuckDB: count(*)", *counts)
    for x, y in [(a, b), (b, a)]:
        left = f"SELECT count(*) FROM (SELECT {columns} FROM {x} EXCEPT ALL SELECT {columns} FROM {y})"
        if rows(left)[0][0]:
            different = [
                name
                for name in readable
                if rows(
                    f'SELECT 1 FROM {a} ours JOIN {b} theirs USING (file_row_number) '
                    f'WHERE ours."{name}" IS DISTINCT FROM theirs."{name}" LIMIT 1'
                )
            ]
            raise Different(f"DuckDB: EXCEPT ALL leaves rows; columns {different}")

    filters = 0
    for name, value, expected in looked_for(table):
        condition = f'"{name}" = {LOOKED_FOR[name](value)}'
        query = f"SELECT file_row_number FROM {a} WHERE {condition} ORDER BY ALL"
        same(f"DuckDB: rows where {condition}", [row for (row,) in rows(query)], expected)
        filters += 1
    for name in ["i64", "utf8"]:
        nulls = f'SELECT count(*) FROM {a} WHERE "{name}" IS NULL'
        same(f"DuckDB: nulls of {name}", rows(nulls)[0][0], table[name].null_count)
        filters += 1
        for value in values_of(table, name)[:1]:
            literal = LOOKED_FOR[name](value)
            (plan,) = [text for _, text in rows(f'EXPLAIN SELECT * FROM {a} WHERE "{name}" = {literal}')]
            if "Filters" not in plan:
                raise Different(f"DuckDB does not push a filter of {name} down: {plan}")
            expected = pc.sum(pc.greater(table[name], value)).as_py() or 0
            greater = f'SELECT count(*) FROM {a} WHERE "{name}" > {literal}'
            same(f"DuckDB: rows where {name} > {literal}", rows(greater)[0][0], expected)
            filters += 1

    # What DuckDB shows of column chunks, but for where they are and how large. Of a chunk of nulls only
    # the parquet crate does not say that no NaN is in it; we do.
    facts = (
        "row_group_id, column_id, row_group_num_rows, row_group_num_columns, path_in_schema, type, "
        "num_values, compression, stats_min, stats_max, stats_min_value, stats_max_value, "
        "stats_null_count, coalesce(stats_nan_count, 0), stats_distinct_count, min_is_exact, "
        "max_is_exact, bloom_filter_offset IS NULL, column_index_offset IS NULL, "
        "offset_index_offset IS NULL"
    )
    chunks = [rows(f"SELECT {facts} FROM parquet_metadata({sql(path)})") for path in (ours, theirs)]
    same("DuckDB: column chunks", len(chunks[0]), len(chunks[1]))
    for x, y in zip(*chunks):
        same("DuckDB: a column chunk", x, y)

    blooms = [bloom_filters(rows, path) for path in (ours, theirs)]
    same("columns with bloom filters", *(list(found) for found in blooms))
    for chunk, found in blooms[0].items():
        if not same_bloom(found, blooms[1][chunk]):
            raise Different(f"the bloom filter of {chunk} does not hold the same values")
    probes, excluded = 0, 0
    if blooms[0]:
        for name, value, expected in looked_for(table):
            if name not in PROBED:
                continue
            verdicts = [
                rows(
                    f"SELECT row_group_id, bloom_filter_excludes FROM parquet_bloom_probe("
                    f"{sql(path)}, '{name}', {LOOKED_FOR[name](value)}) ORDER BY ALL"
                )
                for path in (ours, theirs)
            ]
            same(f"DuckDB: bloom filters asked for {name} = {value!r}", *verdicts)
            if expected and all(excludes for _, excludes in verdicts[0]):
                raise Different(f"DuckDB: bloom filters exclude {name} = {value!r}, which is there")
            probes += len(verdicts[0])
            excluded += sum(excludes for _, excludes in verdicts[0])
    return {
        "rows": counts[0],
        "columns": len(readable),
        "skipped": skipped,
        "filters": filters,
        "chunks": len(chunks[0]),
        "bloom_filters": len(blooms[0]),
        "bloom_probes": probes,
        "bloom_excluded": excluded,
    }


def main(ours: Path, theirs: Path) -> int:
    db = duckdb.connect()
    db.execute("SET threads = 1; SET TimeZone = 'UTC'")
    names = sorted(path.name for path in ours.iterdir())
    same("files", names, sorted(path.name for path in theirs.iterdir()))
    failures, reasons = 0, set()
    totals = {"files": 0, "pyarrow": {"skipped": {}}, "duckdb": {"skipped": {}}}
    for name in names:
        said = {"file": name.removesuffix(".parquet")}
        try:
            said["pyarrow"], table = with_pyarrow(ours / name, theirs / name)
            said["pyarrow"]["filtered_rows"] = with_filters_of_pyarrow(ours / name, table)
            columns = pq.read_schema(ours / name).names
            said["duckdb"] = with_duckdb(db, ours / name, theirs / name, table, columns)
        except (Different, OSError, pa.ArrowException, duckdb.Error) as error:
            print(f"{name}: {type(error).__name__}: {str(error)[:4000]}", file=sys.stderr)
            failures += 1
            continue
        print(json.dumps(said))
        totals["files"] += 1
        for peer in ["pyarrow", "duckdb"]:
            total = totals[peer]
            for column, reason in said[peer].pop("skipped").items():
                skipped = total["skipped"].setdefault(reason, {})
                skipped[column] = skipped.get(column, 0) + 1
                reasons.add(reason)
            for key, value in said[peer].items():
                total[key] = total.get(key, 0) + value
    print(json.dumps(totals))
    for reason in {*PYARROW_CANNOT, *DUCKDB_CANNOT} - reasons:
        print(f"nothing is skipped any more for: {reason}", file=sys.stderr)
        failures += 1
    return 1 if failures else 0


sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
