"""Which tests of the record run on every store, and which are about files alone, with the reason."""

from __future__ import annotations

import ast
from pathlib import Path

HERE = Path(__file__).parent
SHARED = (
    "test_export.py", "test_identities.py", "test_kills_and_ranks.py", "test_log_pages.py", "test_passes.py",
    "test_place.py", "test_reader.py", "test_run_numbers.py", "test_selection.py",
    "test_record.py", "test_sessions.py", "test_writer_faults.py",
)  # fmt: skip
"""The files of tests that both stores have to pass."""
PURE = "asks no record"
FILE = "is about a file: its bytes, its folder, its place or its disk"
TWIN = "has a twin in test_postgres.py, which asks the server what this asks the file"
SQLITE = "a connection of sqlite3 belongs to one thread; one of psycopg does not"
FILE_ONLY = {
    "test_rewards_never_take_the_name_of_a_column": PURE,
    "test_a_session_is_alive_while_its_process_is": PURE,
    "test_a_killed_process_is_not_alive_before_anybody_waits_for_it": PURE,
    "test_of_another_machine_the_last_sign_counts": PURE,
    "test_a_secret_is_hidden_as_json_writes_it": PURE,
    "test_what_was_acknowledged_survives_kills": TWIN,
    "test_ranks_write_one_run_and_lose_no_row": TWIN,
    "test_a_reader_sees_whole_batches_while_they_are_written": TWIN,
    "test_what_cannot_be_encoded_is_recorded_all_the_same": TWIN,
    "test_equal_texts_of_several_sessions_are_stored_once": TWIN,
    "test_what_is_no_record_is_refused_in_a_line": TWIN,
    "test_a_place_that_is_none_is_refused": "has a twin in test_address.py",
    "test_a_record_that_cannot_be_written_is_refused_in_a_line": TWIN,
    "test_an_older_record_is_brought_up_to_date": TWIN,
    "test_writers_that_migrate_at_once_do_it_once": TWIN,
    "test_a_record_is_moved_aside_whole": TWIN,
    "test_secrets_of_the_environment_reach_no_record": TWIN,
    "test_a_rank_leaves_the_making_of_the_file_to_rank_0": TWIN,
    "test_a_locked_file_is_waited_for": TWIN,
    "test_a_file_that_stays_locked_ends_the_record_in_bounded_time": TWIN,
    "test_an_interpreter_that_ends_writes_what_it_was_given": FILE,
    "test_a_full_disk_is_told_in_words_and_leaves_nothing_behind": FILE,
    "test_a_file_that_was_cut_short_is_refused_in_a_line": FILE,
    "test_bytes_that_changed_are_refused_in_a_line": FILE,
    "test_what_the_first_write_meets_is_said_in_a_line": FILE,
    "test_a_damaged_text_is_told_with_its_file": FILE,
    "test_a_reader_says_whose_it_is": SQLITE,
    "test_what_becomes_known_later_is_in_the_session": FILE,
    "test_a_deleted_record_is_put_back": FILE,
    "test_two_writers_of_a_deleted_record_meet_in_one_file": FILE,
    "test_a_record_that_was_renamed_is_left_as_it_is": FILE,
    "test_a_full_disk_delays_the_record_and_loses_nothing": FILE,
    "test_a_disk_that_stays_full_ends_the_record_in_bounded_time": FILE,
    "test_a_file_system_that_is_read_only_is_waited_for": FILE,
    "test_a_folder_of_another_user_is_named": FILE,
    "test_garbage_in_the_files_place_is_told_and_what_was_there_comes_back": FILE,
    "test_a_file_that_is_overwritten_begins_anew_once_it_is_taken_away": FILE,
    "test_garbage_that_stays_ends_the_record_in_bounded_time": FILE,
    "test_a_rank_does_not_wait_for_ever": FILE,
    "test_a_folder_that_cannot_hold_a_log_is_written_without": FILE,
    "test_a_folder_whose_place_a_file_has_is_refused": FILE,
    "test_a_record_without_blocks_is_read_from_its_rows": FILE,
    "test_a_record_of_an_older_release_gets_the_table_when_it_is_written": FILE,
    "test_a_damaged_block_is_told_in_a_line": FILE,
}
"""The others, with the reason why they have no run on PostgreSQL."""


def _tests(name: str) -> dict[str, bool]:
    """Return the tests of a file, and whether each takes a fixture that is made on every store."""
    tree = ast.parse((HERE / name).read_text(encoding="utf-8"))
    functions = [one for one in tree.body if isinstance(one, ast.FunctionDef)]
    taken = {one.name: {argument.arg for argument in one.args.args} for one in functions}
    on_stores = {"place", "record", "runs"} | {one for one, given in taken.items() if given & {"place"}}
    on_stores |= {one.name for one in functions if "STORES" in ast.unparse(ast.Module(one.decorator_list, []))}
    return {one: bool(given & on_stores) for one, given in taken.items() if one.startswith("test_")}


def test_a_test_of_the_record_runs_on_every_store_or_says_why_not() -> None:
    """A test that is added is of both, unless the table has it; the table has no test that is not there."""
    found = {test: shared for name in SHARED for test, shared in _tests(name).items()}
    assert sorted(FILE_ONLY) == sorted(test for test, shared in found.items() if not shared)
