"""The contract as data: every row of the API, and what its tests must show.

A test carries `@pytest.mark.requirement("name", …)`; `test_requirements.py` fails on a row without
a test, a deferral without a reason, a deferral that has a test after all, and a mark that names no
row.
"""

from __future__ import annotations

from typing import NamedTuple


class Requirement(NamedTuple):
    """One promise."""

    sentence: str
    source: str
    """Where it is promised: `api 3` is section 3 of the API's contract, `design 6` section 6 of the
    design.
    """
    deferred: str = ""
    """Why no test shows it yet."""


ROWS: dict[str, Requirement] = {
    # ways in
    "entry:query": Requirement(
        "One model call without tools or history; a schema gives a checked value with at "
        "most two repairs.",
        "api 1",
    ),
    "entry:stream": Requirement("The same as an async iterator of deltas.", "api 1"),
    "entry:run": Requirement(
        "One agent run to its end, not kept unless a store is given.", "api 1"
    ),
    "entry:run:on-event": Requirement(
        "A run passes its events to a callback that may fail alone.", "api 1"
    ),
    "entry:run:schema": Requirement("A run delivers a validated structured value.", "api 1"),
    "entry:open": Requirement(
        "The application is an async context manager that may be entered and left in "
        "different tasks.",
        "api 1",
    ),
    "entry:open:store": Requirement("Any store serves, one's own too.", "api 1"),
    "entry:connect": Requirement(
        "The sessions of a server, with the same calls, through lost connections and restarts.",
        "api 4b",
    ),
    "entry:tool": Requirement(
        "A typed Python function becomes a tool with schema, effect, preview and limits.", "api 1"
    ),
    "entry:store-contract": Requirement(
        "The protocol of a store is checked by weft.testing.store_contract.", "api 1"
    ),
    # the application
    "app:read_blob": Requirement("A blob, with the secrets in a text masked.", "api 4b"),
    "app:topic-sessions": Requirement(
        "The topic `sessions` names the sessions whose rows in the list have changed.", "api 4b"
    ),
    "app:topics": Requirement("The topic `repo:updates` names the files that change.", "api 1"),
    "app:memory": Requirement(
        "What the user asked to be remembered: listed, added, removed; known to the next request.",
        "api 4b",
    ),
    "app:index": Requirement(
        "Files, symbols, outlines and maps of the project, read as it is now.", "api 1"
    ),
    "app:config": Requirement(
        "Settings come from files, environment and caller, in this order; a wrong one is named.",
        "api 1",
    ),
    # results
    "result:fields": Requirement(
        "A reply has text, messages, reason, usage, cost, duration, iterations, calls, "
        "model and session.",
        "api 1",
    ),
    "result:always": Requirement(
        "A run that started always ends in a result; an exception is only for what keeps "
        "it from starting.",
        "api 1",
    ),
    "result:deliverable": Requirement(
        "A structured result is in the deliverable, of the type that was asked for.", "api 1"
    ),
    # why a turn ended
    "reason:stop": Requirement("The model answered without calls.", "api 1"),
    "reason:submitted": Requirement("The structured result was handed in.", "api 1"),
    "reason:aborted": Requirement("The user or a program stopped the turn.", "api 1"),
    "reason:max_turns": Requirement("The limit of answers was reached.", "api 1"),
    "reason:max_time": Requirement("The time of one turn is over, also in a command.", "api 1"),
    "reason:max_tool_calls": Requirement("A call was beyond the limit of one turn.", "api 1"),
    "reason:max_budget": Requirement(
        "The budget is used up, or cannot be kept because the price is unknown.", "api 1"
    ),
    "reason:no_progress": Requirement(
        "The same calls with the same results: one nudge, then the end.", "design 6"
    ),
    "reason:mistakes": Requirement("Answers that cannot be acted on end the turn.", "design 6"),
    "reason:context_overflow": Requirement(
        "The request does not fit, whatever is compacted.", "api 1"
    ),
    "reason:schema_failed": Requirement("No valid structured result came.", "api 1"),
    "reason:provider_error": Requirement("The vendor failed and no retry helped.", "api 1"),
    "reason:auth_error": Requirement("The key is missing or was refused.", "api 1"),
    "reason:halted": Requirement(
        "The turn was ended because something else came first, or it crashed too often.", "api 1"
    ),
    # every changing call
    "command:input-id": Requirement(
        "A repeated input id returns the first answer; with other arguments it raises.", "api 0"
    ),
    "command:cancel": Requirement(
        "Cancelling a wait undoes nothing; only abort stops a turn.", "api 0"
    ),
    "command:busy": Requirement(
        "A call that would move the head while a turn runs raises SessionBusy.", "api 0"
    ),
    "command:errors": Requirement(
        "A wrong call raises a WeftError with a sentence, and changes nothing.", "api 0"
    ),
    # the blocking API
    "sync:names": Requirement("The blocking API offers the same names.", "api 0"),
    # all sessions
    "manager:start_session:id": Requirement(
        "An id is made where none is given, sortable by time.", "api 2"
    ),
    "manager:start_session:known": Requirement(
        "A known id is resumed; a running one is returned.", "api 2"
    ),
    "manager:start_session:title": Requirement(
        "The default title is replaced by a real one after the first turn.", "api 2"
    ),
    "manager:start_session:auto_approve": Requirement(
        "Every ask is answered with yes; deny rules still hold.", "api 2"
    ),
    "manager:start_session:messages": Requirement("A conversation can be brought along.", "api 2"),
    "manager:start_session:resume": Requirement(
        "With resume=auto an interrupted turn goes on at once; else it waits.", "api 2"
    ),
    "manager:start_session:store": Requirement(
        "A session can be kept in another store than the app's, with all that belongs to it.",
        "api 2",
    ),
    "manager:get": Requirement("A stored session is started without calling a model.", "api 0"),
    "manager:find_session": Requirement(
        "Running sessions by id or unique prefix; an ambiguous one raises.", "api 2"
    ),
    "manager:read_session": Requirement(
        "Messages and metadata of a stored session without starting anything.", "api 2"
    ),
    "manager:list_active": Requirement("Running sessions with what they do.", "api 2"),
    "manager:fork_session:input_id": Requirement(
        "A fork repeated under one input id is the same fork.", "api 4b"
    ),
    "manager:import_session:input_id": Requirement(
        "An import repeated under one input id is the same session.", "api 4b"
    ),
    "manager:delete_session:input_id": Requirement(
        "A deletion repeated under one input id is done once.", "api 4b"
    ),
    "manager:list_saved": Requirement(
        "Stored sessions, newest first, by project and by words.", "api 2"
    ),
    "manager:list_saved:cursor": Requirement(
        "The list is read page by page, each session once.", "api 4b"
    ),
    "manager:list_saved:damaged": Requirement(
        "One unreadable session never hides the others.", "api 2"
    ),
    "manager:stop_session": Requirement(
        "Graceful; the record stays; an unknown id raises.", "api 2"
    ),
    "manager:delete_session": Requirement(
        "A deleted session is gone; one that forks share lives on in them.", "api 2"
    ),
    "manager:rename_session": Requirement("A title can be changed, running or not.", "api 2"),
    "manager:archive_session": Requirement(
        "An archived session leaves the list and can come back.", "api 2"
    ),
    "manager:fork_session": Requirement(
        "The past is shared by reference; both go on alone.", "api 2"
    ),
    "manager:fork_session:effects": Requirement(
        "What the source is in the middle of is not repeated.", "design law 5"
    ),
    "manager:import_session": Requirement(
        "An import is untrusted: conversation only, the rest is named.", "api 2"
    ),
    "manager:export_session": Requirement(
        "Export of an import equals the import but for the id.", "api 2"
    ),
    # supervision
    "supervision:restart": Requirement(
        "A session that crashes is restarted from its log, three times in a minute, then "
        "stays down with its reason.",
        "api 2",
    ),
    "supervision:alone": Requirement("Other sessions never notice.", "api 2"),
    "supervision:unload": Requirement(
        "An idle session without a subscriber is unloaded and comes back with the next call.",
        "api 2",
    ),
    # processes
    "processes:drive": Requirement(
        "A session of another process is driven through its owner.", "design 4"
    ),
    "processes:take-over": Requirement(
        "When the owner goes, another takes over at once.", "design 4"
    ),
    # the store
    "store:fails": Requirement(
        "A store that fails costs nothing that was accepted, and says so.", "safety F11"
    ),
    "store:too-new": Requirement(
        "A session of a newer program is listed, refused and not touched.", "design law 12"
    ),
    # one session
    "session:wait": Requirement("Ends when the session stops, with why.", "api 3"),
    "session:send_message": Requirement("Prompt, and wait for the reply of its own turn.", "api 3"),
    "session:send_message:options": Requirement("Options hold for this message.", "api 3"),
    "session:send_message:busy": Requirement("SessionBusy only with queue=False.", "api 3"),
    "session:send_message:parts": Requirement(
        "Content is text or parts: text, image, file.", "api 3"
    ),
    "session:send_prompt": Requirement("Returns as soon as the prompt is durable.", "api 3"),
    "session:queue_steering": Requirement(
        "Delivered after the running tool batch and before the next model call.", "api 3"
    ),
    "session:queue_follow_up": Requirement(
        "Sent when the turn ends, each with a turn of its own.", "api 3"
    ),
    "session:queue:idle": Requirement("On an idle session both are the same as a prompt.", "api 3"),
    "session:get_queued_messages": Requirement("Looks only.", "api 3"),
    "session:recall_queues": Requirement("Returns both queues and empties them.", "api 3"),
    "session:dequeue_steering": Requirement("Takes all steering messages back.", "api 3"),
    "session:clear_queues": Requirement("Empties both queues.", "api 3"),
    "session:combine_queue_entries_to_text": Requirement("One string, images named.", "api 3"),
    "session:edit_queued": Requirement("A queued message can be changed.", "api 3"),
    "session:remove_queued": Requirement("A queued message can be taken out.", "api 3"),
    "session:reorder_queue": Requirement("The queue can have another order.", "api 3"),
    "session:queue:durable": Requirement("The queue survives a crash.", "api 3"),
    "session:abort:partial": Requirement(
        "Partial text is kept, in the model's context too.", "api 3"
    ),
    "session:abort:kills": Requirement("The tool's whole process group is killed.", "api 3"),
    "session:abort:settles": Requirement(
        "Open calls get an aborted result; even a tool that ignores it is settled without.", "api 3"
    ),
    "session:abort:receipt": Requirement(
        "The receipt names the queued messages that survive; idle, it is only a receipt.", "api 3"
    ),
    "session:stop_after_step": Requirement(
        "The turn ends after its present step, whose calls have run, and can go on.", "page 5"
    ),
    "session:continue_turn": Requirement(
        "Goes on from exactly what is stored: after an abort, a limit, a vendor's "
        "failure and a crash.",
        "api 3",
    ),
    "turn:effects": Requirement(
        "An effect is never run again silently; one that can be checked is checked.", "design law 5"
    ),
    "session:attach": Requirement("Viewers read, one drives.", "api 3"),
    "session:detach": Requirement("A client can go.", "api 3"),
    "session:claim_driver": Requirement("Another client takes over driving.", "api 3"),
    "session:approve_plan": Requirement(
        "Architect mode: the plan that waits is approved.", "api 3"
    ),
    "session:edit_plan": Requirement("Architect mode: the plan that waits is changed.", "api 3"),
    "session:reject_plan": Requirement(
        "Architect mode: the plan that waits is turned down.", "api 3"
    ),
    "session:background_commands": Requirement("Shells that run in the background.", "api 3"),
    "background:judged": Requirement(
        "Such a command is judged, shown and recorded as intended like any other; only "
        "the user lets it out of the sandbox.",
        "design 7",
    ),
    "background:life": Requirement(
        "It outlives turns and aborts, and ends with the session.", "design 8"
    ),
    "background:told": Requirement(
        "Its end is reported to the user, and to the model with its next call.", "design 6"
    ),
    "background:crash": Requirement(
        "What a dead process left of it is killed when the session is resumed, and both "
        "learn of it.",
        "design 6",
    ),
    "background:changes": Requirement(
        "What it changed is named when it ends, never taken for certain and never put "
        "back by itself.",
        "design 7",
    ),
    "session:kill_background:elsewhere": Requirement(
        "It is seen and ended from another process, too.", "design 4"
    ),
    "session:kill_background": Requirement("A shell in the background is ended.", "api 3"),
    "session:set_budget": Requirement(
        "Money and tokens can be limited, and the limit raised.", "api 3"
    ),
    "session:pin": Requirement("A pinned message is marked.", "api 3"),
    "session:unpin": Requirement("A message that is pinned no more is marked so.", "api 3"),
    "session:todos": Requirement("The task list that the model keeps.", "api 3"),
    "session:add_system_message": Requirement(
        "Shown and kept; sent to the model only if asked.", "api 3"
    ),
    "session:respond_to_permission": Requirement(
        "allow_once, allow_turn, allow_always and deny count for exactly what was shown.", "api 3"
    ),
    "session:respond_to_permission:late": Requirement(
        "A late, unknown or second answer raises and approves nothing.", "api 3"
    ),
    "session:respond_to_permission:shown": Requirement(
        "An answer is bound to what was shown.", "api 3"
    ),
    "session:respond_to_permission:several": Requirement(
        "With several requests open, one must be named.", "api 3"
    ),
    "session:respond_to_permission:save": Requirement(
        "meta={'save': True} keeps the answer as a rule.", "api 3"
    ),
    "session:respond_to_approval": Requirement("The other spelling of the answers.", "api 3"),
    "session:answer_question": Requirement(
        "The answer to a question reaches the model; only the first counts.", "api 3"
    ),
    "session:messages": Requirement("The whole present line with calls and results.", "api 3"),
    "session:get_history": Requirement("The same under its other name.", "api 3"),
    "session:messages_with_ids": Requirement("An id never changes.", "api 3"),
    "session:line": Requirement(
        "A page of the present line with ids; only what is on it is read.", "api 4b"
    ),
    "session:nodes": Requirement(
        "The words of any messages of the tree, which the whole tree has of the newest only.",
        "design 9",
    ),
    "session:turn-cost": Requirement(
        "A turn of a long session reads no more than one of a short session.", "design 9"
    ),
    "session:get_status": Requirement(
        "idle, thinking, executing_tool, awaiting_permission, interrupted, error: "
        "computed, never stored.",
        "api 3",
    ),
    "session:messages:details": Requirement(
        "Messages of the history hold parts, thinking, model, usage and time.", "api 4b"
    ),
    "session:read_file": Requirement(
        "A project file, under the rules of `@file`: masked, or refused.", "api 4b"
    ),
    "session:read_file:at": Requirement("A project file as it was at a node.", "api 4b"),
    "session:editor_snapshot": Requirement("What a screen needs to draw itself.", "api 3"),
    "session:join": Requirement(
        "Cursor, drafts in flight and events in one step: a screen shows every token once.",
        "api 4b",
    ),
    "session:metadata": Requirement(
        "Id, title, model, times, counts, first prompt, cost and status.", "api 3"
    ),
    "session:usage": Requirement(
        "Every call counted: per model, per turn, per branch and in total.", "api 3"
    ),
    "session:touched_files": Requirement("Created, modified, deleted, newest first.", "api 3"),
    "session:files_at": Requirement(
        "The files of any message, rebuilt from the log alone.", "api 4b"
    ),
    "session:write_files": Requirement(
        "The files of a message below a new folder; what is not stored is named.", "api 4b"
    ),
    "session:subscribe": Requirement(
        "A cursor replays what was missed and then follows, with no gap and no repeat.", "api 3"
    ),
    "session:subscribe:slow": Requirement("A slow reader never slows the session.", "api 3"),
    "session:subscribe:break": Requirement("Leaving the loop is safe.", "api 3"),
    "session:unsubscribe": Requirement("Ends the iteration.", "api 3"),
    "session:get_provider": Requirement("The provider of the session's model.", "api 3"),
    "session:get_available_models": Requirement("Every model that could be used.", "api 3"),
    "session:get_commands": Requirement("The slash commands.", "api 3"),
    "session:update_model": Requirement("Takes effect on the next call; history stays.", "api 3"),
    "session:update_model:thinking": Requirement(
        "Reasoning signed by another model is not replayed.", "api 3"
    ),
    "session:cycle_model": Requirement("The next of the configured rotation.", "api 3"),
    "session:set_thinking_level": Requirement(
        "Reaches the model; an unknown level is refused.", "api 3"
    ),
    "session:cycle_thinking_level": Requirement("The next level.", "api 3"),
    "session:set_mode": Requirement("normal or architect.", "api 3"),
    "session:get_mode": Requirement("normal or architect.", "api 3"),
    "session:set_permission_mode": Requirement(
        "plan, default, accept_edits, auto, bypass; what asks nothing does not outlive "
        "its process.",
        "api 3",
    ),
    "session:compact": Requirement(
        "The model reads a summary, the user the whole history.", "api 3"
    ),
    "session:summarize": Requirement("A handover document named after the session.", "api 3"),
    "session:list_skills": Requirement("All skills and the active ones.", "api 3"),
    "session:activate_skill": Requirement("An active skill is in the prompt.", "api 3"),
    "session:deactivate_skill": Requirement("A skill can be switched off.", "api 3"),
    "session:set_boundary": Requirement(
        "Enforced for every way a file can change; the range follows.", "api 3"
    ),
    "session:boundary_for": Requirement("The range that holds.", "api 3"),
    "session:clear_boundary": Requirement("A boundary can be lifted.", "api 3"),
    "session:clear_all_boundaries": Requirement("All boundaries can be lifted.", "api 3"),
    "session:toggle_tool_collapse": Requirement("View state, kept with the session.", "api 3"),
    "session:toggle_all_tool_collapses": Requirement("View state, kept with the session.", "api 3"),
    "session:new_session": Requirement(
        "Another session; readers of the old handle are notified.", "api 3"
    ),
    "session:load_session": Requirement(
        "A stored session; readers of the old handle are notified.", "api 3"
    ),
    "session:stop": Requirement("Ends the session's life here; its record stays.", "api 3"),
    "session:branch_at": Requirement(
        "The line goes on from there, and the model sees that.", "api 3"
    ),
    "session:list_branches": Requirement("All branches.", "api 3"),
    "session:switch_branch": Requirement("Never loses the line that was left.", "api 3"),
    "session:rename_branch": Requirement("The same branch by another name.", "api 3"),
    "session:delete_branch": Requirement("Forgets the name and keeps the messages.", "api 3"),
    "session:checkpoint": Requirement("A place to go back to.", "api 3"),
    "session:rewind": Requirement("Files go back to what they were at that node.", "api 3"),
    "session:revisions": Requirement("An edited node keeps its earlier texts.", "api 3"),
    "session:restore_revision": Requirement("An earlier text is put in force again.", "api 3"),
    "session:summarize_branch": Requirement(
        "Carries what was learned to the present line.", "api 3"
    ),
    "session:generate_branches": Requirement("N candidates at once, ranked.", "api 3"),
    "session:compare_files": Requirement(
        "The files of two branches, from where they part.", "loom 2"
    ),
    "session:weave_files": Requirement(
        "One child with files of two branches, by the gate, undone by a rewind.", "loom 2"
    ),
    "session:net_changes": Requirement("One difference for each file, by turn or in all.", "page"),
    "session:differences": Requirement(
        "Every file that is not what the log tells of, and whose change it is.", "signature 1"
    ),
    "session:ask_aside": Requirement(
        "A side question: in no later request, counted, also in mid-turn.", "signature 9"
    ),
    "session:asides": Requirement(
        "Side questions are shown again at their place, after a reload too.", "signature 9"
    ),
    "session:coming_back": Requirement(
        "What goes on after a crash, how often it did, and what that costs at most.", "signature 9"
    ),
    "session:set_resume": Requirement(
        "What goes on after a crash is the user's choice: ask, auto or never.", "signature 9"
    ),
    "session:receipts": Requirement(
        "Each claim of an answer beside what was run: green, grey or amber.", "signature 6"
    ),
    "session:request": Requirement(
        "What was sent, byte for byte, its cost by part, and why the cache was missed.",
        "signature 8",
    ),
    "session:exclude": Requirement(
        "A message is in no request, and put back each request is as before.", "signature 8"
    ),
    "session:include": Requirement(
        "A message that was excluded is sent again, and the requests are as before.", "signature 8"
    ),
    "session:bisect": Requirement(
        "The turn, the call or the user's own change at which a check began to fail.", "signature 4"
    ),
    "session:open_at": Requirement(
        "The files as they were at a message, to be looked at and run in.", "signature 5"
    ),
    "project:blame": Requirement(
        "What wrote a line: the message, the decision, who allowed it, the first check after it.",
        "signature 5",
    ),
    "session:schedule": Requirement(
        "A prompt is sent at a time, once for each round, with what the user gave to it.",
        "api 4c",
    ),
    "session:set_goal": Requirement(
        "Turn after turn until a check, or a judge, says that it is reached.", "api 4c"
    ),
    "session:goal": Requirement("The goal, where it stands, and what its checks said.", "api 4c"),
    "session:edit_goal": Requirement(
        "Another text, check or limit from the next round on.", "api 4c"
    ),
    "session:pause_goal": Requirement(
        "The present step ends, and nothing more is begun.", "api 4c"
    ),
    "session:resume_goal": Requirement("A goal that is paused goes on where it stood.", "api 4c"),
    "session:clear_goal": Requirement("The goal ends; true when there was one.", "api 4c"),
    "session:waits": Requirement("The wait of the turn, and every schedule.", "api 4c"),
    "session:wait_for": Requirement(
        "A turn begins asleep; the model is asked when what it waits for has come.", "api 4c"
    ),
    "session:cancel_wait": Requirement(
        "A wait or a schedule ends; true when it had not ended.", "api 4c"
    ),
    "session:revert_hunk": Requirement("An edit by the gate, undone by a rewind.", "page"),
    "session:take_hunk": Requirement("One hunk of another branch, by the gate.", "page"),
    # the application
    "app:kept_contents": Requirement(
        "File contents, which of them go next, and what is lost with them.", "signature 10"
    ),
    "app:import_from": Requirement(
        "What another agent has, shown first, then taken over once, and trusted in nothing.",
        "api 4c",
    ),
    "app:schedule": Requirement(
        "A prompt at a time, in a new session or in one that there is.", "api 4c"
    ),
    "app:decisions": Requirement(
        "The decision graph.", "api 1", "the decision graph is a later issue"
    ),
    "app:permissions": Requirement(
        "Rules: list, add, remove, explain, simulate; the audit of a session.", "api 1"
    ),
    # the turn, and faults that other systems have
    "turn:one-append-a-step": Requirement(
        "A tool round costs at most two appends, one with pure tools one.", "design 1"
    ),
    "turn:request-can-be-rebuilt": Requirement(
        "Each model call names the prefix it was sent with.", "design 9"
    ),
    "fault:second-turn": Requirement(
        "A prompt to a session that waits for permission starts no second turn.", "seeds 6.1"
    ),
    "fault:answer-crashes": Requirement(
        "An answer to nothing, or of no kind, is refused and crashes nothing.", "seeds 6.1"
    ),
    "fault:deaf-while-working": Requirement(
        "A working session answers every question at once.", "seeds 6.1"
    ),
    "fault:order-by-clock": Requirement("Order never comes from a clock.", "seeds 6.1"),
    "fault:turn-lost": Requirement(
        "A crash in the middle of a turn loses nothing of it that had happened.", "seeds 6.2"
    ),
    "fault:instructions-again": Requirement(
        "Instructions are sent once, however many turns there are.", "seeds 6.2"
    ),
    "fault:empty-nodes": Requirement("An empty answer is no message.", "seeds 6.3"),
    "fault:wildcards": Requirement("No sign in an id prefix is a wildcard.", "seeds 6.3"),
    "fault:phantom-context": Requirement(
        "The model sees after reopening what it saw before, reasoning and calls included.",
        "seeds 6.4",
    ),
    "fault:budget-trap": Requirement(
        "A session that met its budget works again when the budget is raised.", "seeds 6.4"
    ),
    "fault:escape-trap": Requirement(
        "An abort while permission is awaited frees the user.", "seeds 6.4"
    ),
    "fault:stale-approval": Requirement(
        "A late answer never approves the next request.", "seeds 6.4"
    ),
    "fault:picture-crashes": Requirement("A picture in a prompt is a prompt.", "seeds 6.4"),
    "fault:delta-is-a-write": Requirement(
        "A stream of many pieces is stored as one message.", "seeds 6.4"
    ),
    "fault:secrets": Requirement(
        "Secrets in tool output reach neither model nor log nor watchers.", "design law 11"
    ),
    "fault:flood": Requirement("A flood is cut for the model and kept whole.", "safety F16"),
    "fault:nonsense": Requirement(
        "Malformed arguments, unknown tools, empty answers, equal ids, too many calls: "
        "each has its outcome.",
        "safety F7 F8",
    ),
    "fault:surrogates": Requirement(
        "Text that no codec takes is cleaned where it enters.", "safety F9"
    ),
    "fault:tool-nonsense": Requirement(
        "A tool that fails, hangs, exits or answers nonsense hurts itself alone.", "design law 9"
    ),
    "fault:retry-doubles": Requirement("A retry never doubles text.", "safety F6"),
}

_LATER = {
    "TokenReceived": "tokens of a view are handed out by its generator; a server will publish them",
}
"""Kinds of events that nothing publishes yet, and why."""

FACTS = (
    "SessionCreated",
    "SettingChanged",
    "ModeChanged",
    "NewMessage",
    "NodeEdited",
    "NodeSplit",
    "NodesJoined",
    "NodeMarked",
    "SubtreeDeleted",
    "SubtreeRestored",
    "HeadMoved",
    "RefMoved",
    "RefDeleted",
    "Rewound",
    "BranchesStarted",
    "BranchFailed",
    "BranchesEnded",
    "InputQueued",
    "InputPromoted",
    "InputEdited",
    "InputRemoved",
    "InputsReordered",
    "QueuesRecalled",
    "TurnStarted",
    "TurnWaiting",
    "TurnWoken",
    "InputScheduled",
    "GoalSet",
    "GoalPaused",
    "GoalChecked",
    "GoalEnded",
    "ScheduleFired",
    "ScheduleEnded",
    "ModelCallStarted",
    "UsageRecorded",
    "ToolExecuting",
    "ToolComplete",
    "FileTouched",
    "WorkspaceSaved",
    "WorkspaceSnapshot",
    "PermissionRequest",
    "PermissionResolved",
    "QuestionAsked",
    "QuestionAnswered",
    "TurnParked",
    "AsideAnswered",
    "TurnFinished",
    "Compacted",
    "ResultsCleared",
    "CompactionUndone",
    "PrefixFrozen",
    "BoundaryChanged",
    "SkillChanged",
    "TodoChanged",
    "DecisionLogged",
    "ChildStarted",
    "ChildFinished",
    "ArchitectPlan",
    "PlanEdited",
    "PlanDecided",
    "ArchitectStep",
    "FanStarted",
    "FanCandidateStarted",
    "FanCandidateEnded",
    "FanVerified",
    "FanJudged",
    "FanKept",
    "FanCandidateDropped",
    "FanCandidateRestored",
    "FanClosed",
    "SystemNote",
    "ErrorRaised",
    "SessionRestarted",
    "SessionHosted",
)
LIVE = (
    "SessionStatus",
    "TextDelta",
    "ThinkingDelta",
    "ToolArgsDelta",
    "ToolOutput",
    "CommandPrinted",
    "LlmRetry",
    "AnswerRestarted",
    "ArchitectPhase",
    "ContextUsage",
    "ClientAttached",
    "DriverChanged",
    "RequestOffered",
    "TokenReceived",
    "Replaced",
)
"""The kinds of section 5; live ones are not stored."""

_PLANNED = {"ArchitectPlan", "PlanEdited", "PlanDecided", "ArchitectStep", "ArchitectPhase"}
"""Kinds that only an architect's turn makes; its own tests show them."""
_WOVEN = {
    "NodeSplit",
    "NodesJoined",
    "SubtreeDeleted",
    "SubtreeRestored",
    "BranchesStarted",
    "BranchFailed",
    "BranchesEnded",
}
"""Kinds that only text trees make; their own tests show them."""
_RELAYED = {"RequestOffered"}
"""Kinds that only the wire has; the tests of the relay show them."""
_PARKED = {"TurnParked", "AsideAnswered"}
"""Kinds of a process that dies again and again, and of side questions; they have their own tests.
"""
_HOSTED = {"SessionHosted", "WorkspaceSaved"}
"""Kinds that only a host of a cluster writes; the tests of hosted sessions show them."""

TOUR_EVENTS = tuple(
    f"event:{kind}"
    for kind in (*FACTS, *LIVE)
    if kind not in (*_LATER, *_PLANNED, *_WOVEN, *_RELAYED, *_PARKED, *_HOSTED)
    and not kind.startswith("Fan")
)
"""The kinds that a tour through a session must show."""

REQUIREMENTS = ROWS | {
    f"event:{kind}": Requirement(
        f"{kind} is "
        f"{'published live' if kind in LIVE else 'stored, and published as it is stored'}.",
        "api 5",
        _LATER.get(kind, ""),
    )
    for kind in (*FACTS, *LIVE)
}
