// A program of the TypeScript SDK whose user is asked by an MCP server; prints what was asked.
//
//     node asked_program.mjs SDK CLI MODEL FOLDER ENVIRONMENT SERVER ANSWER [TOOL]
//
// ANSWER is what the user answers, as JSON; without one there is nobody who could be asked.  TOOL is
// the one that is allowed.
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const [sdk, cli, model, cwd, environment, server, answer, tool] = process.argv.slice(2);
const { query } = await import(pathToFileURL(join(sdk, 'sdk.mjs')));

const asked = [];
async function onElicitation(request) {
  asked.push([request.serverName, request.message, request.requestedSchema]);
  return JSON.parse(answer);
}

const running = query({
  prompt: 'have it written',
  options: {
    pathToClaudeCodeExecutable: cli,
    cwd,
    model,
    env: JSON.parse(environment),
    mcpServers: { weft: JSON.parse(server) },
    settingSources: [],
    allowedTools: [tool ?? 'mcp__weft__weft_ask'],
    ...(answer ? { onElicitation } : {}),
  },
});
let said = '';
for await (const message of running) {
  if (message.type === 'result') said = message.result;
}
console.log(JSON.stringify({ asked, said }));
process.exit(0);
