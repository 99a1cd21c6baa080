// A program of the TypeScript SDK that uses what the SDK offers, and prints what it saw as JSON.
//
//     node typescript_program.mjs SDK CLI MODEL FOLDER ENVIRONMENT
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [sdk, cli, model, cwd, environment] = process.argv.slice(2);
const { query, tool, createSdkMcpServer } = await import(pathToFileURL(join(sdk, 'sdk.mjs')));
const { z } = createRequire(join(sdk, 'sdk.mjs'))('zod');

const seen = [];
const shape = { a: z.number(), b: z.number() };
const add = tool('add', 'Add two numbers', shape, async (args) => {
  seen.push(['in-process', args]);
  return { content: [{ type: 'text', text: String(args.a + args.b) }] };
});
const calc = createSdkMcpServer({ name: 'calc', tools: [add] });

async function guard(input) {
  seen.push(['hook', input.hook_event_name, input.tool_name ?? '']);
  if (input.hook_event_name === 'PreToolUse' && JSON.stringify(input.tool_input).includes('made')) {
    return {
      hookSpecificOutput: {
        hookEventName: 'PreToolUse',
        permissionDecision: 'deny',
        permissionDecisionReason: 'no touching',
      },
    };
  }
  return {};
}

async function canUseTool(name, input, options) {
  seen.push(['permission', name, Object.keys(input).sort(), Boolean(options.toolUseID)]);
  if (name === 'Write') {
    return { behavior: 'allow', updatedInput: { ...input, content: 'changed\n' } };
  }
  if ((input.command ?? '').includes('stop')) {
    return { behavior: 'deny', message: 'no more', interrupt: true };
  }
  return { behavior: 'allow', updatedInput: input };
}

let next;
async function* prompts() {
  for (const words of ['add', 'write', 'touch', 'stop']) {
    const turn = new Promise((resolve) => { next = resolve; });
    seen.push(['turn', words]);
    yield {
      type: 'user',
      message: { role: 'user', content: words },
      parent_tool_use_id: null,
      session_id: '',
    };
    await turn;
  }
}

function note(message) {
  if (message.type === 'assistant') {
    const blocks = message.message.content;
    seen.push(['assistant', blocks.map((each) => each.type), blocks.map((each) => each.name ?? '')]);
  } else if (message.type === 'result') {
    seen.push(['result', message.subtype, message.is_error, message.stop_reason]);
  } else if (message.type === 'user' && Array.isArray(message.message.content)) {
    const results = message.message.content.filter((each) => each.type === 'tool_result');
    if (results.length) {
      seen.push(['user', results.map((each) => Boolean(each.is_error)),
        message.tool_use_result === undefined]);
    }
  }
}

const hooks = {};
for (const name of ['PreToolUse', 'PostToolUse', 'UserPromptSubmit', 'Stop']) {
  hooks[name] = [{ hooks: [guard] }];
}
const running = query({
  prompt: prompts(),
  options: {
    pathToClaudeCodeExecutable: cli,
    cwd,
    model,
    env: JSON.parse(environment),
    mcpServers: { calc },
    settingSources: [],
    hooks,
    canUseTool,
    agents: { reviewer: { description: 'Reviews', prompt: 'You review.', tools: ['Read'] } },
    systemPrompt: 'You help.',
    disallowedTools: ['WebSearch', 'WebFetch', 'NotebookEdit'],
    maxTurns: 20,
    thinking: { type: 'disabled' },
    extraArgs: { 'replay-user-messages': null },
  },
});
const info = await running.initializationResult();
let turns = 0;
const found = {};
for await (const message of running) {
  note(message);
  if (message.type !== 'result') continue;
  if (++turns === 3) {
    found.mcp = await running.mcpServerStatus();
    found.context = Object.keys(await running.getContextUsage()).sort();
    found.models = (await running.supportedModels()).length > 0;
    found.commands = Array.isArray(await running.supportedCommands());
    const agents = await running.supportedAgents();
    found.agents = agents.map((each) => each.name).filter((name) => name === 'reviewer');
    found.account = typeof (await running.accountInfo());
    await running.setModel(model);
    await running.setPermissionMode('default');
    await running.setMaxThinkingTokens(null);
    await running.toggleMcpServer('calc', false);
    found.off = (await running.mcpServerStatus())[0].status;
    await running.toggleMcpServer('calc', true);
  }
  next();
  if (turns === 4) break;
}
console.log(JSON.stringify({ seen, initialize: Object.keys(info).sort(), ...found }));
process.exit(0);
