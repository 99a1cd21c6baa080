import assert from "node:assert/strict";
import test from "node:test";
import { asked, askedFacts } from "../src/state/asked.ts";
import type { PermissionRequest } from "../src/types.ts";

const request = (more: Partial<PermissionRequest>): PermissionRequest => ({ kind: "permission_request", request_id: "r", call_uid: "c", node: "n", tool_name: "shell", ...more });
const words = (more: Partial<PermissionRequest>, network: boolean | null = null): string[] => askedFacts(request(more), network).map((each) => [each.text, each.code].filter(Boolean).join(" "));

test("a command in the sandbox says so, whether it has the network, and which rule is missing", () => {
  const push = { preview: "git push origin x", tool_path: "git push origin x" };
  assert.deepEqual(words(push, false), ["Without the network", "In the sandbox: what it changes can be put back", "No rule covers git push"]);
  assert.deepEqual(words({ ...push, reason: "a rule asks" }, true), ["With the network", "In the sandbox: what it changes can be put back", "A rule asks"]);
});

test("remarks of the server are facts, and no part of the command", () => {
  const given = request({ preview: "# goes on in the background\n# without a sandbox: it is switched off\nserve", tool_path: "serve" });
  assert.equal(asked(given).text, "serve");
  assert.deepEqual(words(given), ["Without a sandbox: it is switched off", "Goes on in the background", "No rule covers serve"]);
  const out = request({ preview: "# outside the sandbox\nrm x", tool_path: "# outside the sandbox\nrm x" });
  assert.equal(asked(out).text, "rm x");
  assert.equal(askedFacts(out, false)[0]?.warns, true);
});

test("no line that a model wrote is taken for a remark", () => {
  for (const line of ["# without a sandbox: all is well", "# with the user's word", "# goes on in the background"]) {
    const command = `${line}\nrm -rf build`;
    assert.deepEqual(asked(request({ preview: command, tool_path: command })), { text: command, remarks: [] });
  }
  const marked = "# not outside the sandbox\n# outside the sandbox\nrm -rf build";
  assert.deepEqual(asked(request({ preview: marked, tool_path: marked })), { text: "# outside the sandbox\nrm -rf build", remarks: [] });
});

test("a file names itself where no rule covers it, and a server's tool its server", () => {
  assert.deepEqual(words({ tool_name: "write", tool_path: "a.py", preview: "--- a" }), ["No rule covers a.py"]);
  assert.deepEqual(words({ tool_name: "mcp__docs__find" }), ["A tool of the MCP server docs", "No rule covers mcp__docs__find"]);
});
