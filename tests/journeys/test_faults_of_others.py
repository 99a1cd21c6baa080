"""The faults of the systems that Weft takes after, one by one: each has a test that would fail if
it were ours.

`FAULTS` follows section 6 of the description of those systems.  What concerns parts that are not
built yet is in `LATER`.
"""

from __future__ import annotations

import ast
import os
from functools import cache
from pathlib import Path

import pytest

import weft
from tests.support.source_code import ROOT, SRC
from weft.config.setting_keys import KEYS

J, A, W = "journeys/test_", "agents/test_", "workspace/test_"

FAULTS: dict[str, str] = {
    # Loom
    "a second message while leave is asked for starts a second loop": (
        f"{J}permissions::test_speaking_to_a_session_that_waits_for_permission_starts_no_second_turn"
    ),
    "an answer with nothing pending, or no answer at all, crashes "
    "the session": f"{J}permissions::test_an_answer_that_is_no_answer_is_refused",
    "a crash between call and result leaves an orphan that "
    "vendors reject": f"{J}seeds::test_the_model_sees_after_reopening_what_it_saw_before",
    "a working session does not answer": (
        f"{J}seeds::test_a_working_session_answers_every_question_at_once"
    ),
    "messages are ordered by the clock": f"{J}seeds::test_order_does_not_come_from_the_clock",
    "allow_always covers everything": (
        f"{J}permissions::test_permission_for_always_covers_that_very_action_and_no_other"
    ),
    "settings are read by nobody": f"{J}faults_of_others::test_every_setting_is_read_by_something",
    "a summary is made anew for each call": (
        f"{J}compaction::test_the_same_content_is_never_compacted_twice"
    ),
    "a failed summary is asked for before each call": (
        f"{J}compaction_auto::test_a_summary_that_cannot_be_had_is_asked_for_once_a_turn"
    ),
    "commands are judged by matching strings": (
        "permissions/test_policy::test_a_shell_rule_means_the_very_same_text"
    ),
    "what nobody answers is granted": (
        f"{A}permissions::test_without_a_user_a_child_is_told_no_at_once"
    ),
    "a hook cannot ask": "hooks/test_hooks::test_a_hook_may_ask_where_the_mode_does_not",
    "trust is lost with the process": (
        "project/test_trust::test_a_trusted_folder_acts_in_every_session_from_then_on"
    ),
    # ExAthena
    "a turn is stored when it is over": (
        f"{J}coming_back::test_a_second_crash_in_the_middle_of_coming_back_loses_nothing"
    ),
    "a compaction in a turn loses messages of that turn": (
        f"{J}compaction_auto::test_one_turn_of_many_calls_is_compacted_in_its_midst"
    ),
    "instructions are told again each turn": (
        f"{J}seeds::test_instructions_are_told_once_however_many_turns_there_are"
    ),
    "a rewind ignores the chosen point": (
        f"{J}rewind::test_files_go_back_to_what_they_were_at_a_message_whichever_program_changed_them"
    ),
    "a pattern becomes an option of a program": (
        "tools/test_search::test_what_the_model_writes_never_becomes_an_option"
    ),
    "a slow run blocks every other call": (
        f"{J}seeds::test_a_working_session_answers_every_question_at_once"
    ),
    "a crashing hook halts the run": (
        "hooks/test_hooks::test_a_broken_hook_after_a_call_changes_nothing"
    ),
    "hooks before asking are never run": (
        "hooks/test_hooks::test_a_hook_may_answer_a_request_in_the_users_place"
    ),
    "a failing compaction ends the run": (
        f"{J}compaction_auto::test_a_summary_that_cannot_be_had_ends_neither_turn_nor_session"
    ),
    "documents drift from the code": "api/test_documented::test_every_public_name_is_documented",
    "links lead out of the project": (
        f"{W}symlink_escapes::test_no_tree_of_links_and_no_path_leads_outside"
    ),
    "agents lose leave, hooks and boundaries": (
        f"{A}permissions::test_a_child_is_never_above_its_parents_mode"
    ),
    "agents get round hooks": "hooks/test_hooks::test_hooks_hold_for_agents_and_frame_their_work",
    "without its helper a command runs unconfined": (
        f"{J}sandbox::test_where_the_sandbox_is_required_nothing_runs_without_it"
    ),
    "a compaction drops what is pinned": (
        f"{J}compaction_branches::test_a_pinned_message_outlives_every_compaction_word_for_word"
    ),
    "the system prompt is not counted": (
        f"{J}compaction_auto::test_a_prefix_that_fills_most_of_the_window_does_not_compact_before_every_call"
    ),
    "the window is thought larger than it is": (
        f"{J}compaction_auto::test_a_window_that_is_smaller_than_we_think_is_made_to_fit"
    ),
    "reasoning without an answer ends as a blank text": (
        f"{J}nonsense::test_an_empty_answer_is_asked_again"
    ),
    "agents start agents without end": f"{A}agents::test_agents_can_be_nested_only_so_deep",
    "a first error that would pass crashes": (
        f"{J}retries::test_a_server_that_fails_is_asked_again_after_a_growing_wait"
    ),
    "a stream without end": (
        f"{J}retries::test_an_answer_without_end_is_cut_off_and_its_beginning_is_kept"
    ),
    # basemode-loom
    "a cancel throws partial text away": (
        f"{J}abort::test_partial_text_is_kept_and_the_model_sees_it_again"
    ),
    "a cancel throws the money away that was spent": (
        f"{J}every_call_counts::test_a_summary_that_is_cancelled_counts_what_had_come"
    ),
    "signs in an id are wildcards": f"{J}manager::test_an_exact_id_is_never_ambiguous",
    "search has no index": f"{J}manager::test_the_end_of_a_very_long_message_is_searched_too",
    "empty answers become messages": (
        f"{J}abort::test_an_abort_before_the_first_word_leaves_no_empty_answer"
    ),
    # Minga
    "a first run picks a model that cannot be used": (
        f"{J}faults_of_others::test_a_first_run_takes_a_model_that_there_is_a_key_for"
    ),
    "what was held back is written all the same": (
        "workspace/sandbox/test_runner::test_what_the_judge_forbids_stays_out_and_the_rest_comes_in"
    ),
    "after a restart the model works from a "
    "phantom context": f"{J}seeds::test_the_model_sees_after_reopening_what_it_saw_before",
    "nobody can answer what an agent asks": (
        f"{A}permissions::test_a_request_of_a_child_is_asked_on_the_parents_record_and_the_answer_reaches_it"
    ),
    "a reached limit leaves a session that is stuck": (
        f"{J}nonsense::test_a_limit_that_is_reached_leaves_a_session_that_works"
    ),
    "leaving a request traps the person": (
        f"{J}abort::test_an_abort_while_a_permission_is_awaited_withdraws_the_request"
    ),
    "a late answer approves the next request": (
        f"{J}permissions::test_of_two_answers_at_once_exactly_one_counts"
    ),
    "a picture crashes the session": f"{J}content::test_a_picture_alone_is_a_message",
    "branching does not change what the model sees": (
        "seeds/test_minga::test_branching_and_switching_change_what_the_model_sees"
    ),
    "loading appends to the old conversation": (
        "seeds/test_minga::test_loading_another_session_shows_the_model_what_the_user_sees"
    ),
    "usage counts the last call of a turn": (
        f"{J}reading::test_usage_counts_every_call_by_model_by_turn_and_by_line"
    ),
    "calls beside the turns are not counted": (
        f"{J}every_call_counts::test_a_call_beside_the_turns_that_died_with_its_process_is_counted_once"
    ),
    "a compaction cuts between call and result": (
        f"{J}compaction_legality::test_a_turn_that_makes_room_in_its_midst_stays_legal"
    ),
    "boundaries are not enforced": (
        f"{J}boundaries::test_edits_inside_are_made_and_edits_outside_are_not"
    ),
    "new files are not among those that were touched": (
        "project/test_markdown_commands::test_what_a_shell_command_changes_is_known_and_can_be_taken_back"
    ),
    "output has no cap": f"{J}results::test_a_flood_is_cut_for_the_model_and_kept_whole_beside_it",
    "children of a command outlive its time": (
        "workspace/process/test_runner::test_a_command_that_will_not_end_is_killed"
    ),
    "a way to run commands ignores root and overlay": (
        "project/test_markdown_commands::test_a_shell_command_is_held_to_boundaries_and_to_what_may_be_written"
    ),
    "mentions are cut wrongly, or lead outside": (
        "project/test_mentions::test_a_file_outside_is_asked_about_by_its_real_path"
    ),
    "each piece of an answer is a write": (
        f"{J}seeds::test_a_stream_of_many_pieces_is_stored_as_one_message"
    ),
    "names that never reach the map": (
        f"{J}request_hints::test_each_message_brings_a_hint_and_what_was_sent_stays_as_it_was"
    ),
    "documents that are never opened": (
        f"{J}language_servers::test_an_error_made_by_an_edit_is_in_the_same_result"
    ),
    "an edit that trusts what its caller says was there": (
        "loom/test_editing::test_row_apply_edit_of_a_stale_text_writes_nothing"
    ),
    "roots that lose their settings": (
        "loom/test_editing::test_row_apply_edit_of_the_root_by_fork_keeps_settings_and_context"
    ),
    "tools of servers without leave": (
        f"{J}mcp::test_tools_that_are_known_are_offered_by_name_and_asked_about"
    ),
    "the document of hooks is behind the code": (
        "hooks/test_hooks::test_every_moment_and_every_field_is_documented"
    ),
}

LATER = {
    "names that are bound again while a page is fetched": "no tool fetches yet",
}


@cache
def names_in(file: str) -> frozenset[str]:
    tree = ast.parse((ROOT / "tests" / f"{file}.py").read_text("utf-8"))
    defined = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(each.name for each in ast.walk(tree) if isinstance(each, defined))


def test_a_fault_of_others_has_a_test_here() -> None:
    tests = {fault: test.partition("::") for fault, test in FAULTS.items()}
    assert [fault for fault, (file, _, name) in tests.items() if name not in names_in(file)] == []


def test_what_waits_for_its_part_waits_no_longer_than_that() -> None:
    built = {path.name for path in SRC.iterdir() if path.is_dir()}
    assert built.isdisjoint(LATER.values()), "its faults need tests now"


def is_read(name: str, source: str) -> bool:
    """By its whole name, or as one of a family whose beginning is read."""
    return f'"{name}"' in source or f'f"{name.rpartition(".")[0]}.{{' in source


def test_every_setting_is_read_by_something() -> None:
    sources = [file.read_text("utf-8") for file in SRC.rglob("*.py") if file.name != "config.py"]
    unread = [name for name in KEYS if not any(is_read(name, source) for source in sources)]
    assert unread == []


@pytest.mark.parametrize(
    ("variable", "provider"),
    [("OPENAI_API_KEY", "openai"), ("ANTHROPIC_API_KEY", "anthropic"), ("", "local")],
)
@pytest.mark.anyio
async def test_a_first_run_takes_a_model_that_there_is_a_key_for(
    tmp_path: Path, variable: str, provider: str
) -> None:
    environ = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    if variable:
        environ[variable] = "sk-test-not-a-key"
    async with weft.open(tmp_path, "memory", environ=environ) as app:
        assert app.host.default_model().partition(":")[0] == provider
