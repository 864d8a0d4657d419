import { dayLength, spendCounters } from '../rules/spend.ts';
import { type Statement, statement } from '../sql/database/query.ts';
import { addToSpend } from '../sql/spend.ts';
import { now } from './dialect.ts';
import { moreParameters, stateParameters, turnParameters } from './functions/commit-turn.ts';

/** The parameters of every commit, in order. */
export const turnNames = Object.keys(turnParameters) as readonly (keyof typeof turnParameters)[];
export const stateNames = Object.keys(stateParameters) as readonly (keyof typeof stateParameters)[];
export const moreNames = Object.keys(moreParameters) as readonly (keyof typeof moreParameters)[];

// Most turns only add messages, and do not send what they do not have.
const few = [...turnNames, ...stateNames];
const all = [...few, ...moreNames];

type CommitRow = { readonly committed: string | null };

/** What a commit brings along besides its turn. */
interface Along {
  /** The result for its idempotency keys. */
  readonly requests: boolean;
  readonly spend: boolean;
  /** The title of a session that has none. */
  readonly title: boolean;
}

const statements = new Map<string, Statement<CommitRow>>();

/** A commit with everything it carries, in one statement. */
export function commitStatement(hasMore: boolean, along: Along): Statement<CommitRow> {
  // Short: Postgres cuts the names of prepared statements.
  const name = [
    'quick_commit',
    ...(hasMore ? ['more'] : []),
    ...(along.requests ? ['request'] : []),
    ...(along.spend ? ['spend'] : []),
    ...(along.title ? ['title'] : []),
  ].join('_');
  const known = statements.get(name);
  if (known !== undefined) return known;
  const given = hasMore ? all : few;
  const title = along.title ? `, _title => $${given.length + 1}` : '';
  const call = `SELECT @write_commit(${valuesOf(given)}${title}) AS committed`;
  const next = given.length + (along.title ? 2 : 1);
  const text = along.requests || along.spend ? withAlong(call, next, along) : call;
  const made = statement<CommitRow>(name, text);
  statements.set(name, made);
  return made;
}

/** The call with what is recorded besides, whose values are counted from a number on. */
function withAlong(call: string, from: number, { requests, spend }: Along): string {
  const parts = [`done AS MATERIALIZED (${call})`];
  let next = from;
  if (requests) {
    parts.push(`told AS (
       UPDATE @requests q SET receipt = k.receipt, at = ${now}
       FROM done CROSS JOIN unnest($${next++}::bytea[], $${next++}::text[]) k(key, receipt)
       WHERE done.committed IS NOT NULL AND q.key = k.key AND q.run = $1::bytea)`);
  }
  if (spend) {
    const counters = spendCounters.map((name) => `x.${name}`).join(', ');
    const declared = spendCounters.map((name) => `${name} bigint`).join(', ');
    parts.push(`paid AS (
       INSERT INTO @spend AS s(owner, agent, session, by_agent, model, currency, ${spendCounters.join(', ')}, day)
       SELECT $${next++}::text, $${next++}::text, $${next++}::text, x.by_agent, x.model, x.currency, ${counters}, ${now} / ${dayLength}
       FROM done CROSS JOIN json_to_recordset($${next++}::json) AS x(by_agent text, model text, currency text, ${declared})
       WHERE done.committed IS NOT NULL ${addToSpend})`);
  }
  return `WITH ${parts.join(',\n')}\nSELECT committed FROM done`;
}

function valuesOf(given: readonly string[]): string {
  return given.map((_, at) => `$${at + 1}`).join(', ');
}
