import {
  type Agent,
  type AgentTypes,
  type App,
  agentTool,
  backgroundAgentTools,
  type ModelRef,
} from 'waymark';
import { scriptedModel } from 'waymark/testing';

/** An agent that delegates to sub-agents: the writer in the foreground, the researcher in the background. */
export function defineNewsroom<Writer extends AgentTypes, Researcher extends AgentTypes>(
  app: App,
  {
    writer,
    researcher,
    model = script(),
  }: {
    readonly writer: Agent<Writer>;
    readonly researcher: Agent<Researcher>;
    readonly model?: ModelRef;
  },
) {
  return app.defineAgent({
    name: 'newsroom',
    description:
      'An editor with a writer and a researcher. Try “Write about lighthouses” or “Research tides”.',
    model,
    system:
      'You are an editor. Let the writer write and the researcher research in the background.',
    tools: [agentTool(writer), ...backgroundAgentTools(researcher, { name: 'research' })],
  });
}

function script(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [
          /write (?:about )?(.*)/i,
          ([, subject = 'anything']) => ({
            text: 'The writer is on it. ',
            toolCalls: [{ name: 'writer', input: { message: subject } }],
          }),
        ],
        [
          /research (.*)/i,
          ([, subject = 'anything']) => ({
            toolCalls: [{ name: 'research_start', input: { message: subject } }],
          }),
        ],
        [
          /\b([0-9a-f-]{36})\b/i,
          ([runId]) => ({ toolCalls: [{ name: 'research_check', input: { runId } }] }),
        ],
      ],
      afterTools: (_, [result]) => {
        if (typeof result === 'object' && result !== null && 'runId' in result) {
          return `The researcher works in the background. Ask me about \`${result.runId}\` later, or watch it under **Runs**.`;
        }
        if (typeof result === 'object' && result !== null && 'status' in result) {
          return `The research is **${result.status}**. ${result.text ?? 'There is no text yet.'}`;
        }
        return `The writer says: ${String(result)}`;
      },
      otherwise: 'I edit. Tell me to **write about** something, or to **research** it.',
    },
    { name: 'script' },
  );
}
