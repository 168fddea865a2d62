"""The reward for SQL: what counts as the same result, and what a query may not do."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

from builtin_rewards.sql import sql_result
from rewardkit import Rollout, Runtime

SCHEMA = """
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE city (name TEXT, people INTEGER, area REAL, country INTEGER);
INSERT INTO city VALUES ('Oslo', 700, 454.0, 1), ('Bergen', 290, 465.5, 1), ('Rome', 2800, 1285.0, 2);
INSERT INTO city VALUES ('Elba', NULL, 224.0, 2);
CREATE TABLE country (id INTEGER PRIMARY KEY, name TEXT);
INSERT INTO country VALUES (1, 'Norway'), (2, 'Italy');
CREATE VIEW large AS SELECT * FROM city WHERE people > 500;
COMMIT;
"""
FOREVER = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
quick = sql_result(timeout_s=0.3)


@pytest.mark.parametrize(
    ("answer", "completion", "score"),
    [
        ("SELECT name FROM city", "SELECT name FROM city ORDER BY name DESC", 1.0),
        ("SELECT name FROM city", "Here:\n```sql\nselect name as n from city;\n```\nDone.", 1.0),
        ("SELECT name FROM city", "```sql\nSELECT 1\n```\n```sql\nSELECT name FROM city -- all\n```", 1.0),
        ("SELECT name FROM city", "<think>SELECT</think> SELECT name FROM city;", 1.0),
        ("SELECT name FROM city", "```sqlite\nSELECT name FROM city\n```", 1.0),
        ("SELECT name FROM city", "```PostgreSQL\nSELECT name FROM city\n```", 1.0),
        ("SELECT name FROM city", "```sql\nSELECT name FROM city; ;\n```", 1.0),
        ("SELECT name FROM city", "`SELECT name FROM city`", 1.0),
        ("SELECT name FROM city", "Not `SELECT 1`, but `SELECT name FROM city;`.", 1.0),
        ("SELECT name FROM city", "SELECT `name` FROM `city`", 1.0),
        ("SELECT name FROM city", "select name as `with tax` from city", 1.0),
        ("SELECT name FROM city", "<think>hm</think><answer>SELECT name FROM city</answer>", 1.0),
        ("SELECT name FROM city", "SELECT name FROM city;<|im_end|>", 1.0),
        ("SELECT name FROM city", "<answer>SELECT name FROM city</answer><answer>SELECT 1</answer>", 0.0),
        ("SELECT name FROM city", "SELECT name FROM city <answer>SELECT 1</answer>", 0.0),
        ("SELECT name FROM city", "SELECT DISTINCT name FROM city WHERE 1", 1.0),
        ("SELECT name FROM city WHERE people > 500", "SELECT name FROM large", 1.0),
        ("SELECT name FROM large", "SELECT name FROM city WHERE people > 500", 1.0),
        ("SELECT name FROM city ORDER BY people", "SELECT name FROM city ORDER BY people ASC", 1.0),
        ("SELECT name FROM city ORDER BY people", "SELECT name FROM city ORDER BY people DESC", 0.0),
        ("SELECT name FROM (SELECT * FROM city ORDER BY people)", "SELECT name FROM city ORDER BY name", 1.0),
        ("SELECT name FROM city WHERE name != 'order by' /* order by */", "SELECT name FROM city ORDER BY 1", 1.0),
        ("SELECT avg(people) FROM city", "SELECT sum(people) * 1.0 / count(people) FROM city", 1.0),
        ("SELECT avg(people) FROM city", "SELECT avg(people) + 0.000001 FROM city", 1.0),
        ("SELECT avg(people) FROM city", "SELECT avg(people) + 0.1 FROM city", 0.0),
        ("SELECT count(*) FROM city", "SELECT count(*) * 1.0 FROM city", 1.0),
        ("SELECT count(*) FROM city", "SELECT 1 + count(*) FROM city", 0.0),
        ("SELECT count(*) FROM city", "SELECT CAST(count(*) AS TEXT) FROM city", 0.0),
        ("SELECT people FROM city", "SELECT coalesce(people, 0) FROM city", 0.0),
        ("SELECT people FROM city", "SELECT people FROM city LIMIT 3", 0.0),
        ("SELECT name FROM city", "SELECT name, people FROM city", 0.0),
        ("SELECT name, people FROM city", "SELECT people, name FROM city", 0.0),
        ("SELECT name FROM country", "SELECT country.name FROM country JOIN city ON country = id", 0.0),
        ("SELECT count(*) FROM city", "SELECT 4", 0.0),
        ("SELECT count(*) FROM city", "WITH t(a) AS (VALUES (4)) SELECT a FROM t", 0.0),
        ("SELECT 1 + 1", "SELECT 2", 1.0),
        ("SELECT name FROM city", "SELECT name FROM town", 0.0),
        ("SELECT name FROM city", "The names of all cities.", 0.0),
        ("SELECT name FROM city", "```python\nSELECT name FROM city\n```", 0.0),
        ("SELECT name FROM city", "EXPLAIN SELECT name FROM city", 0.0),
        ("SELECT name FROM city", "SELECT CAST(x'ff' AS TEXT) FROM city", 0.0),
        ("SELECT name FROM city", "", 0.0),
    ],
)
def test_the_same_result(answer: str, completion: str, score: float) -> None:
    """Columns by place, rows as a multiset, in order where the gold orders them, numbers nearly."""
    assert score == sql_result(completion=completion, schema=SCHEMA, answer=answer).value


POINTS = """
CREATE TABLE t (name TEXT COLLATE NOCASE, points INTEGER, home INTEGER, away INTEGER, share REAL);
INSERT INTO t VALUES ('a', 9, 1, 2, 0.1), ('b', 7, 2, 3, 0.2), ('c', 7, 3, 1, 0.3), ('C', 7, 3, 2, 0.4);
INSERT INTO t VALUES ('d', 5, 4, 4, 0.5);
"""


@pytest.mark.parametrize(
    ("answer", "completion", "columns", "ties"),
    [
        # Columns in another order: the same one for all rows.
        ("SELECT name, points FROM t", "SELECT points, name FROM t", 1.0, 0.0),
        ("SELECT name, points, share FROM t ORDER BY 3", "SELECT share, name, points FROM t ORDER BY 1", 1.0, 0.0),
        ("SELECT name, points FROM t ORDER BY share", "SELECT points, name FROM t ORDER BY share DESC", 0.0, 0.0),
        ("SELECT share, points FROM t", "SELECT points * 1.0, share + 1e-12 FROM t", 1.0, 0.0),
        ("SELECT name, points FROM t", "SELECT points, name, points, name FROM t", 0.0, 0.0),
        ("SELECT name, points FROM t", "SELECT points, points FROM t", 0.0, 0.0),
        ("SELECT name, points FROM t", "SELECT points, name FROM t UNION ALL SELECT name, points FROM t", 0.0, 0.0),
        (
            "SELECT name, points FROM t",
            "SELECT iif(points > 6, points, name), iif(points > 6, name, points) FROM t", 0.0, 0.0,
        ),
        (
            "SELECT name, points FROM t",
            "SELECT (SELECT points FROM t AS o WHERE o.share = .6 - t.share), name FROM t", 0.0, 0.0,
        ),
        ("SELECT home, away FROM t WHERE share < .35", "SELECT away, home FROM t WHERE share < .35", 0.0, 0.0),
        ("SELECT home, name, away FROM t", "SELECT name, home, away FROM t", 1.0, 0.0),
        ("SELECT points, points FROM t", "SELECT points, points FROM t", 1.0, 1.0),
        ("SELECT count(*), max(points) FROM t", "SELECT max(points), count(*) FROM t", 1.0, 0.0),
        # Rows that are tied: others in the same places, and never more, fewer, twice or better ones.
        ("SELECT name FROM t ORDER BY points DESC", "SELECT name FROM t ORDER BY points DESC, share DESC", 0.0, 1.0),
        ("SELECT name FROM t ORDER BY points DESC", "SELECT name FROM t ORDER BY points", 0.0, 0.0),
        ("SELECT name FROM t ORDER BY points DESC", "SELECT name FROM t ORDER BY name DESC", 0.0, 0.0),
        (
            "SELECT name FROM t ORDER BY points DESC LIMIT 2",
            "SELECT name FROM t WHERE share = .1 OR share = .3", 0.0, 1.0,
        ),
        ("SELECT name FROM t ORDER BY points DESC LIMIT 2;", "SELECT name FROM t WHERE share IN (.1, .4)", 0.0, 1.0),
        (
            "SELECT name FROM t ORDER BY points DESC LIMIT 2 -- two",
            "SELECT name FROM t WHERE share IN (.1, .4)", 0.0, 1.0,
        ),
        (
            "SELECT name FROM t ORDER BY points DESC -- all\n LIMIT 2",
            "SELECT name FROM t WHERE share IN (.1, .4)", 0.0, 1.0,
        ),
        ("SELECT name FROM t ORDER BY points DESC LIMIT 2", "SELECT name FROM t WHERE share IN (.1, .5)", 0.0, 0.0),
        ("SELECT name FROM t ORDER BY points DESC LIMIT 2", "SELECT name FROM t WHERE share IN (.2, .3)", 0.0, 0.0),
        (
            "SELECT name FROM t ORDER BY points DESC LIMIT 2",
            "SELECT name FROM t WHERE share IN (.1, .3) ORDER BY 1 DESC", 0.0, 0.0,
        ),
        ("SELECT name FROM t ORDER BY points DESC LIMIT 2", "SELECT name FROM t WHERE points > 6", 0.0, 0.0),
        ("SELECT name FROM t ORDER BY points DESC LIMIT 2", "SELECT name FROM t WHERE share = .1", 0.0, 0.0),
        (
            "SELECT name FROM t ORDER BY points DESC LIMIT 3",
            "SELECT name FROM t WHERE share = .1 UNION ALL SELECT 'b' UNION ALL SELECT 'b'", 0.0, 0.0,
        ),
        ("SELECT name FROM t WHERE points = 7 ORDER BY points LIMIT 2", "SELECT 'b' FROM t LIMIT 2", 0.0, 0.0),
        ("SELECT name FROM t ORDER BY points LIMIT 1 OFFSET 1", "SELECT name FROM t WHERE share = .4", 0.0, 1.0),
        ("SELECT name FROM t ORDER BY points LIMIT 1, 1", "SELECT name FROM t WHERE share = .3", 0.0, 1.0),
        ("SELECT name FROM t ORDER BY points LIMIT 1 OFFSET 1", "SELECT name FROM t WHERE share = .1", 0.0, 0.0),
        ("SELECT name FROM t ORDER BY points LIMIT 1 + 1", "SELECT name FROM t", 0.0, None),
        ("SELECT name FROM t LIMIT 2", "SELECT name FROM t WHERE share > .35", 0.0, 1.0),
        ("SELECT name FROM t LIMIT 2", "SELECT 'e' FROM t LIMIT 2", 0.0, 0.0),
        (
            "SELECT name, share FROM t ORDER BY points DESC LIMIT 1",
            "SELECT name, share + 1e-12 FROM t LIMIT 1", 1.0, 1.0,
        ),
        (
            "SELECT max(name), points FROM t GROUP BY points ORDER BY count(*)",
            "SELECT max(name), points FROM t GROUP BY 2 ORDER BY count(*), 2 DESC", 0.0, 1.0,
        ),
        (
            "SELECT home FROM t UNION SELECT away FROM t ORDER BY 1 DESC",
            "SELECT DISTINCT home FROM t ORDER BY 1 DESC", 1.0, 1.0,
        ),
        (
            "SELECT name FROM t UNION SELECT name FROM t ORDER BY name",
            "SELECT DISTINCT name FROM t ORDER BY name", 1.0, None,
        ),
    ],
)  # fmt: skip
def test_other_orders_by_setting(answer: str, completion: str, columns: float, ties: float | None) -> None:
    """Columns in another order and rows that the gold leaves tied count where a setting says so."""
    given = {"completion": completion, "schema": POINTS, "answer": answer}
    assert columns == sql_result(any_column_order=True)(**given).value
    assert ties == sql_result(ties=True)(**given).value
    plain = sql_result(**given).value
    assert plain in (0.0, 1.0)
    assert not plain or (columns == 1.0 and ties != 0.0)


def test_ties_are_told_by_their_rows() -> None:
    """Python's hash of -1 is that of -2; rows that differ in these alone are one tie all the same."""
    schema = "CREATE TABLE t (x INT, s INT); INSERT INTO t VALUES (-1, 5), (-2, 5);"
    given = {"schema": schema, "answer": "SELECT x FROM t ORDER BY s"}
    for way in ("ASC", "DESC"):
        assert 1.0 == sql_result(ties=True)(completion=f"SELECT x FROM t ORDER BY 1 {way}", **given).value
    assert 0.0 == sql_result(ties=True)(completion="SELECT -1 AS x FROM t", **given).value


def test_both_settings_and_many_rows() -> None:
    """They go together where the limit cuts no tie, and neither takes long on many rows that are all tied."""
    answer = "SELECT name, points FROM t ORDER BY points DESC LIMIT 4"
    both = sql_result(any_column_order=True, ties=True)
    query = "SELECT points, name FROM t WHERE points > 6 ORDER BY points DESC, share DESC"
    assert 1.0 == both(completion=query, schema=POINTS, answer=answer).value
    many = "CREATE TABLE m (a INT, b INT);" + FOREVER + "INSERT INTO m SELECT x % 7, x FROM c LIMIT 9000;"
    answer = "SELECT a, b FROM m ORDER BY a % 1 LIMIT 8000"
    assert 1.0 == both(completion="SELECT a, b FROM m WHERE b > 1000", schema=many, answer=answer).value
    assert 0.0 == both(completion="SELECT a, max(b, 1500) FROM m WHERE b > 1000", schema=many, answer=answer).value


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name FROM city; SELECT name FROM city",
        "SELECT name FROM city; DROP TABLE city",
        "DELETE FROM city",
        "INSERT INTO city VALUES ('X', 1, 1, 1)",
        "UPDATE city SET name = 'X' RETURNING name",
        "CREATE TEMP TABLE x AS SELECT name FROM city",
        "DROP TABLE city",
        "PRAGMA table_info(city)",
        "SELECT name FROM pragma_table_info('city')",
        "ATTACH 'FILE' AS x",
        "VACUUM INTO 'FILE'",
        "SELECT load_extension('FILE') FROM city",
        "SELECT writefile('FILE', name) FROM city",
        "SELECT name FROM city ORDER BY random()",
        "BEGIN",
        "COMMIT",
        "REINDEX",
        FOREVER + "SELECT x FROM c",
        FOREVER + "SELECT count(*) FROM c",
        FOREVER + "SELECT x FROM c ORDER BY x",
        FOREVER + "SELECT hex(zeroblob(400000)) FROM c",
        "SELECT zeroblob(1000000000) FROM city",
        "SELECT " + "(" * 5_000 + "1" + ")" * 5_000 + " FROM city",
        "SELECT " + "1+" * 5_000 + "1 FROM city",
        "SELECT " + ", ".join("1" * 1_000) + " FROM city",
        "SELECT name FROM city WHERE name LIKE '" + "%a" * 500 + "'",
        "SELECT name FROM city WHERE name = '" + "a" * 1_000_000 + "'",
        "/*" * 100_000,
        "SELECT name FROM city\0",
        "SELECT '\ud800' FROM city",
        " \n",
        "(" * 10_000,
        ";",
        "--",
    ],
    ids=lambda query: query[:40],
)
def test_what_a_query_may_not_do(query: str, tmp_path: Path) -> None:
    """Writing, reaching outside and taking for ever score 0.0, with a reason; no file comes of it."""
    made = quick if query.startswith(FOREVER) else sql_result
    score = made(
        completion=query.replace("FILE", str(tmp_path / "x.db")), schema=SCHEMA, answer="SELECT name FROM city"
    )
    assert 0.0 == score.value
    assert score.reason
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("schema", "answer", "words"),
    [
        (None, "SELECT 1", "no schema or no answer"),
        (SCHEMA, None, "no schema or no answer"),
        (" ", "SELECT 1", "no schema or no answer"),
        (SCHEMA, "", "no schema or no answer"),
        ("CREATE TABEL x (a)", "SELECT 1", "syntax error"),
        (SCHEMA, "SELECT name FROM town", "no such table"),
        (SCHEMA, "SELECT 1; SELECT 2", "one statement"),
        (SCHEMA, "DELETE FROM city", "not authorized"),
        (SCHEMA, "SELECT random()", "not authorized"),
        (SCHEMA, FOREVER + "SELECT x FROM c", "more than 10000 rows"),
        (SCHEMA, FOREVER + "SELECT count(*) FROM c", "more than 0.3 s"),
        (FOREVER.replace("WITH", "CREATE TABLE y AS WITH") + "SELECT x FROM c", "SELECT 1", "more than 0.3 s"),
        ("ATTACH 'x.db' AS x", "SELECT 1", "not authorized"),
        (SCHEMA, "SELECT name FROM city WHERE 0", "no rows"),
    ],
)
def test_rows_whose_gold_is_at_fault_are_skipped(schema: str | None, answer: str | None, words: str) -> None:
    """A gold that does not run, or gives nothing, is not the completion's fault."""
    made = quick if "0.3 s" in words else sql_result
    score = made(completion="SELECT 1", schema=schema, answer=answer)
    assert score.value is None
    assert words in (score.reason or "")


def test_rows_that_nearly_agree_are_matched_in_any_order() -> None:
    """Many rows that differ in the last digits agree, one that differs more does not."""
    schema = "CREATE TABLE t (a REAL, b INTEGER);" + "".join(
        f"INSERT INTO t VALUES ({i / 7}, {i});" for i in range(500)
    )
    answer = "SELECT a, b FROM t"
    assert (
        1.0 == sql_result(completion="SELECT a + 1e-12, b FROM t ORDER BY b DESC", schema=schema, answer=answer).value
    )
    one_off = "SELECT a + (b = 77) * 0.01, b FROM t ORDER BY b DESC"
    assert 0.0 == sql_result(completion=one_off, schema=schema, answer=answer).value
    assert 1.0 == sql_result(tolerance=0.1)(completion=one_off, schema=schema, answer=answer).value


@pytest.mark.parametrize(
    "settings", [{"timeout_s": 0}, {"timeout_s": float("inf")}, {"max_rows": 0}, {"tolerance": 1}, {"tolerance": -1}]
)
def test_settings(settings: dict[str, Any]) -> None:
    """What makes no sense is refused by name."""
    with pytest.raises(ValueError, match=f"{next(iter(settings))}="):
        sql_result(**settings)


def test_in_the_runtime() -> None:
    """Columns come from the row; a null gold is a skip."""
    row = {"schema": SCHEMA, "answer": "SELECT name FROM city"}
    rollouts = [Rollout("", "SELECT name FROM city", row), Rollout("", "DROP TABLE city", row)]
    rollouts += [Rollout("", "SELECT 1", {"schema": SCHEMA, "answer": None})]
    with Runtime([sql_result], workers=1) as runtime:
        assert [1.0, 0.0, None] == runtime.score(rollouts).scores["sql_result"]


@pytest.mark.parametrize("made", [sql_result, quick])
def test_rewards_travel(made: Any) -> None:
    """They pickle, and score the same afterwards."""
    again = pickle.loads(pickle.dumps(made))
    row = {"completion": "SELECT name FROM city", "schema": SCHEMA, "answer": "SELECT name FROM city"}
    assert (made.name, made(**row)) == (again.name, again(**row))
