import type { Agent } from '../../../src/agent/contract/agent.ts';
import type { App } from '../../../src/app.ts';
import { type ScriptStep, scriptedModel } from '../../../src/testing/scripted-model.ts';

/** What the model says in the process that dies: it never comes to an answer. */
export const dyingScript: readonly ScriptStep[] = [
  { chunks: ['Let me ', 'note that.'], toolCalls: [{ name: 'note' }] },
  { hang: true },
];

/** An agent with one tool that sends a status. */
export function defineNoter(app: App, script: readonly ScriptStep[]): Agent {
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 'noted');
  return app.defineAgent({ name: 'noter', model: scriptedModel([...script]), tools: [note] });
}
