import type { OptionValues } from '../command.ts';
import type { agentOption, agentsOptions } from '../source/open-agents.ts';

type Filters = OptionValues<typeof agentOption & typeof agentsOptions> & {
  readonly query?: string;
  readonly failed?: boolean;
  readonly waiting?: boolean;
  readonly labelled?: boolean;
};

/** Why a list is empty: which filters were applied, and whose data was read. */
export function emptyList(what: string, options: Filters): string {
  const { agent, query, owner, url } = options;
  const filters = [
    agent === undefined ? '' : ` of agent "${agent}"`,
    query === undefined ? '' : ` that match "${query}"`,
    owner === undefined ? '' : ` of owner "${owner}"`,
    options.failed ? ' whose last turn failed' : '',
    options.waiting ? ' that wait for an answer' : '',
    options.labelled ? ' with a label' : '',
  ].join('');
  return `No ${what}${filters}. ${whose(owner, url)}`.trim();
}

function whose(owner: string | undefined, url: string | undefined): string {
  if (url !== undefined) {
    return 'A server lists only what its caller owns: to authenticate, use --header.';
  }
  if (owner !== undefined) return '';
  return 'Sessions that have an owner are not included: to read them, use --owner.';
}
