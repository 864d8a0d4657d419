import { agentsCommand } from '../source/open-agents.ts';
import { oneLine, table } from '../text/format.ts';

export const skills = agentsCommand({
  name: 'skills',
  summary: 'List the skills of the agents',
  about:
    'Shows each skill with the hash of its files, as snapshots have it. Fails if a skill is not valid, and says why.',
  examples: ['skills', 'skills --agent coder --json'],
  async run({ agents }) {
    const lists = agents.map(async (agent) => {
      const own = await (agent.skills?.() ?? agent.describe().then((info) => info.skills));
      return (own ?? []).map((skill) => ({ agent: agent.name, ...skill }));
    });
    const items = (await Promise.all(lists)).flat();
    const rows = items.map(({ agent, name, version, description, origin }) => [
      agent,
      oneLine(name),
      version.slice(0, 12),
      oneLine(origin === undefined ? description : `${description} (${origin})`, 100),
    ]);
    const text = rows.length === 0 ? 'The agents have no skills.' : table(rows);
    return { json: { items }, text };
  },
});
