import type { PoolClient } from 'pg';
import { type CollectedQuery, isRowOf } from '../sql/database/collected-write.ts';
import type { SqlValue } from '../sql/database/query.ts';
import { give, ignore } from './connection.ts';
import {
  bodyWith,
  codeFor,
  ensureFunction,
  type FunctionCall,
  nameFor,
  numberOf,
  type SentWrite,
  typesOf,
  type WriteCall,
} from './guarded-writes.ts';

/*
 * The writes of most turns have one of a few shapes: the same statements in the same order. The function for every write finds out at each
 * step what to run and takes the parameters from lists, which costs the server half as much again as the statements. So a frequent
 * shape gets its own function, created in the background: its statements one after the other, with a parameter for each value.
 */

/** How often a shape is sent before it gets a function, which takes about as many round trips. */
const usesBefore = 20;
/** How many shapes get one. */
const mostShapes = 64;
/** A function takes a hundred parameters, and the last one is `_durable`. */
const mostValues = 99;

export class ShapeFunctions {
  readonly #schema: string;
  readonly #connect: () => Promise<PoolClient>;
  /** The functions that are there, by the kind and shape of the write. */
  readonly #calls = new Map<string, WriteCall>();
  /** How often other shapes were sent. */
  readonly #uses = new Map<string, number>();
  #making: Promise<void> | undefined;
  #isStopped = false;

  constructor(schema: string, connect: () => Promise<PoolClient>) {
    this.#schema = schema;
    this.#connect = connect;
  }

  /** The call of the shape's own function, if there is one by now. */
  callOf(kind: string, { sent, calls: shape }: SentWrite): FunctionCall | undefined {
    const key = `${kind} ${shape}`;
    const call = this.#calls.get(key);
    if (call === undefined) this.#count(key, kind, sent);
    return call && { call, values: valuesOf(sent) };
  }

  /** Forgets a function that is gone; the shape is counted again. */
  forget(gone: WriteCall): void {
    for (const [key, call] of this.#calls) if (call === gone) this.#calls.delete(key);
  }

  /** Makes no more functions, and waits for the one that is being made. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#making;
  }

  #count(key: string, kind: string, sent: readonly CollectedQuery[]): void {
    if (this.#isStopped || this.#calls.size >= mostShapes) return;
    // Rare shapes do not keep the frequent ones out.
    if (this.#uses.size >= mostShapes) this.#uses.clear();
    const uses = (this.#uses.get(key) ?? 0) + 1;
    this.#uses.set(key, uses);
    if (uses < usesBefore || this.#making !== undefined) return;
    this.#uses.delete(key);
    if (valuesOf(sent).length > mostValues) return;
    this.#making = this.#make(kind, sent)
      .then((call) => {
        if (call !== undefined) this.#calls.set(key, call);
      }, ignore)
      .finally(() => {
        this.#making = undefined;
      });
  }

  /** Creates the function of a shape. If it may not or fails, the function for every write stays in use. */
  async #make(kind: string, sent: readonly CollectedQuery[]): Promise<WriteCall | undefined> {
    const name = nameFor(bodyOf(sent, ''));
    const client = await this.#connect();
    let isBroken = true;
    try {
      const isMade = await ensureFunction(client, this.#schema, name, async () => ({
        parameters: [
          ...(await parametersOf(client, this.#schema, sent)),
          '_durable boolean',
        ].join(),
        body: bodyOf(sent, this.#schema),
      }));
      isBroken = false;
      if (!isMade) {
        this.#isStopped = true;
        return undefined;
      }
    } finally {
      give(client, isBroken);
    }
    const places = Array.from({ length: valuesOf(sent).length + 1 }, (_, place) => `$${place + 1}`);
    return { name: kind, prepared: name, text: `SELECT @${name}(${places.join()}) AS answers` };
  }
}

/** The values that are sent: all but the numbers of rows, which come about in the function. */
function valuesOf(sent: readonly CollectedQuery[]): readonly SqlValue[] {
  return sent.flatMap(({ values }) => values.filter((value) => !isRowOf(value)) as SqlValue[]);
}

async function parametersOf(
  client: PoolClient,
  schema: string,
  sent: readonly CollectedQuery[],
): Promise<readonly string[]> {
  const parameters: string[] = [];
  for (const { statement, values } of sent) {
    const types = await typesOf(client, schema, numberOf.get(statement) ?? 0);
    for (const [place, value] of values.entries()) {
      if (!isRowOf(value)) parameters.push(`_value${parameters.length} ${types[place]}`);
    }
  }
  return parameters;
}

function bodyOf(sent: readonly CollectedQuery[], schema: string): string {
  const rows = new Set(
    sent.flatMap(({ values }) => values.filter(isRowOf)).map(({ rowOf }) => rowOf),
  );
  let count = 0;
  const code = sent.map(({ statement, values }, place) => {
    const names = values.map((value) =>
      isRowOf(value) ? `_row${value.rowOf}` : `_value${count++}`,
    );
    const run = codeFor(numberOf.get(statement) ?? 0, schema, (which) => names[which - 1] ?? '');
    return rows.has(place) ? `${run} _row${place} := _fact.row_id;` : run;
  });
  return bodyWith([...rows].map((place) => `_row${place} bigint;`).join(' '), code.join('\n  '));
}
