import type { Results } from '../results.ts';
import { headline } from './headline.ts';
import { about, background, floors, footprint, http, idle, paced } from './service-tables.ts';
import {
  branch,
  resume,
  stored,
  storedBytes,
  storedQueries,
  toolTurns,
  turns,
} from './session-tables.ts';
import type { Table } from './table.ts';

const loads = 'chunks per second and share of the bare server; ms to the first chunk';

/** All tables of a run that have something to show. */
export function tablesOf(results: Results): readonly Table[] {
  return [
    about(results),
    floors(results),
    turns(results),
    stored(results),
    storedBytes(results),
    storedQueries(results),
    toolTurns(results),
    resume(results),
    branch(results),
    footprint(results),
    idle(results),
    http(results, 'turns', `G. HTTP, answers of 20 chunks: ${loads}`),
    http(results, 'streams', `G. HTTP, answers of 1,000 chunks: ${loads}`),
    paced(results),
    background(results),
    headline(results),
  ].filter(({ rows }) => rows.length > 0);
}
