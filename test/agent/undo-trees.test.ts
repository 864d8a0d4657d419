import { expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const isLong = process.env.LONG === '1';
const trees = isLong ? 10_000 : 200;

/** Numbers that a seed repeats. */
function random(seed: number): (below: number) => number {
  let state = seed * 2_654_435_761 + 1;
  return (below) => {
    state = (Math.imul(state ^ (state >>> 15), 2_246_822_519) + 3_266_489_917) | 0;
    return ((state ^ (state >>> 13)) >>> 0) % below;
  };
}

/** A snapshot of the model: its effects, and where it came from, also out of another session. */
interface Node {
  readonly id: string;
  readonly session: string;
  readonly parent: Node | undefined;
  readonly effects: readonly string[];
  readonly failed: boolean;
  /** The snapshot of another session that it is a copy of. */
  readonly copy: boolean;
  labelled: boolean;
}

function pathOf(node: Node | undefined): readonly Node[] {
  const path: Node[] = [];
  for (let at = node; at !== undefined; at = at.parent) path.push(at);
  return path;
}

/** The part of a path within its session. */
function ownPath(node: Node): readonly Node[] {
  return pathOf(node).filter(({ session }) => session === node.session);
}

const model = scriptedModel({
  patterns: [
    [
      /^book (.*?)( then fail)?$/,
      ([, names = '']) => ({
        toolCalls: names.split(' ').map((what) => ({ name: 'book', input: { what } })),
      }),
    ],
  ],
  afterTools: ({ messages }) => {
    const asked = JSON.stringify(messages.findLast(({ role }) => role === 'user'));
    return asked.includes('then fail') ? { error: new Error('down') } : 'Done.';
  },
  otherwise: 'Hello.',
});

const undone = new Set<string>();
let twice = 0;
const app = waymark({ model, store: memoryStore(), onError: () => {} });
const book = app.defineTool(
  {
    name: 'book',
    description: 'Books',
    input: z.object({ what: z.string() }),
    undo: ({ input }) => {
      if (undone.has(input.what)) twice++;
      undone.add(input.what);
    },
  },
  () => 1,
);
const agent = app.defineAgent({ name: 'desk', tools: [book], title: false });
let effects = 0;

/** Grows a tree of sessions by random steps, and looks after each undo at what live branches need. */
async function grow(seed: number): Promise<{ readonly undos: number; readonly kept: number }> {
  const below = random(seed);
  const nodes: Node[] = [];
  const heads = new Map<string, Node>();
  let hasLostFork = false;
  let undos = 0;
  let kept = 0;
  const pick = (): Node | undefined => {
    const good = nodes.filter(({ failed, session }) => !failed && heads.has(session));
    return good[below(Math.max(1, good.length))];
  };
  const turn = async (session: string, from: Node | undefined, fails: boolean): Promise<void> => {
    const names = Array.from({ length: below(3) }, () => `e${effects++}`);
    const text = names.length === 0 ? 'Hi' : `book ${names.join(' ')}${fails ? ' then fail' : ''}`;
    const at = from === undefined ? { sessionId: session } : { snapshotId: from.id };
    await agent.run(text, { ...at, throwOnError: false });
    const { items } = await agent.listSnapshots(session, { includeOrphaned: true, limit: 200 });
    const last = items.at(-1) ?? expect.fail('no snapshot');
    const failed = last.status === 'failed';
    const node: Node = {
      id: last.snapshotId,
      session,
      parent: from,
      effects: names,
      failed,
      copy: false,
      labelled: false,
    };
    nodes.push(node);
    if (!failed) heads.set(session, node);
  };
  const first = `t${seed}`;
  await turn(first, undefined, false);
  for (let step = 0; step < 6 + below(10); step++) {
    const node = pick();
    if (node === undefined) break;
    switch (below(9)) {
      case 0:
      case 1:
      case 2:
      case 3:
        await turn(node.session, below(3) === 0 ? node : heads.get(node.session), below(5) === 0);
        break;
      case 4: {
        const fork = await agent.fork(node.id);
        const copy: Node = {
          id: fork.snapshotId,
          session: fork.sessionId,
          parent: node,
          effects: [],
          failed: false,
          copy: true,
          labelled: false,
        };
        nodes.push(copy);
        heads.set(fork.sessionId, copy);
        break;
      }
      case 5:
        node.labelled = !node.labelled;
        await agent.label(node.id, node.labelled ? 'kept' : null);
        break;
      case 6:
        await agent.restore(node.id);
        heads.set(node.session, node);
        break;
      case 7:
        if (heads.size < 2 || below(3) > 0) break;
        await agent.deleteSession(node.session);
        heads.delete(node.session);
        for (const each of nodes) if (each.session === node.session) each.labelled = false;
        hasLostFork = true;
        break;
      default: {
        const head = heads.get(node.session) ?? expect.fail('no head');
        const before = new Set(undone);
        const onPath = new Set(ownPath(node));
        const left = ownPath(head).filter((each) => !onPath.has(each));
        const joint = ownPath(head).find((each) => onPath.has(each));
        const from = new Set(joint === undefined ? left : [...left, joint]);
        const lost = nodes.filter(({ failed, parent }) => failed && parent && from.has(parent));
        const wanted = [...left, ...lost].flatMap((each) => each.effects);
        await agent.restore(node.id, { undo: await agent.planUndo(node.id) });
        heads.set(node.session, node);
        undos++;
        // What the live branches rely on: heads, and labelled snapshots of sessions that are there.
        const live = [
          ...heads.values(),
          ...nodes.filter(({ labelled, session }) => labelled && heads.has(session)),
        ];
        const needed = new Set(live.flatMap((each) => pathOf(each).flatMap((at) => at.effects)));
        for (const name of undone) {
          if (before.has(name)) continue;
          expect(needed.has(name), `seed ${seed}: ${name} is undone and needed`).toBe(false);
          expect(wanted, `seed ${seed}: ${name} is undone and was not left`).toContain(name);
        }
        for (const name of wanted) {
          if (needed.has(name)) kept++;
          // A fork whose source was deleted counts as relying on what it shares.
          else if (!hasLostFork) expect(undone, `seed ${seed}: ${name} stays`).toContain(name);
        }
      }
    }
  }
  for (const session of heads.keys()) await agent.deleteSession(session);
  return { undos, kept };
}

test(
  `S762 S767 in ${trees} random trees of sessions, nothing that a live branch needs is undone`,
  async () => {
    let undos = 0;
    let kept = 0;
    for (let seed = 1; seed <= trees; seed++) {
      const grown = await grow(seed);
      undos += grown.undos;
      kept += grown.kept;
    }
    await app.close();
    expect(twice).toBe(0);
    expect(undos).toBeGreaterThan(trees / 4);
    expect(kept).toBeGreaterThan(trees / 40);
    console.log(`${trees} trees: ${undos} undos of ${undone.size} effects, ${kept} kept`);
  },
  isLong ? 3_600_000 : 120_000,
);
