import fc from 'fast-check';
import { applyPatch as applyInPlace } from 'rfc6902';
import { describe, expect, test, vi } from 'vitest';
import { anyJson, nastyKeys } from '../../../test/support/any-json.ts';
import { diffJson } from './diff.ts';
import { isDeepFrozen, type Json, jsonEqual, toJson } from './json.ts';
import { applyKnownPatch, applyPatch, type JsonPatch, type JsonPatchOperation } from './patch.ts';
import { toPointer } from './pointer.ts';
import { produce } from './produce.ts';

// The other implementation loses these names, or follows them into the prototype.
const theirKeys = nastyKeys.filter(
  (key) => !['__proto__', 'constructor', 'prototype'].includes(key),
);

const plainCopy = <T>(value: T): T => JSON.parse(JSON.stringify(value));

describe('applyPatch', () => {
  // Appendix A of RFC 6902.
  test.each<[string, Json, JsonPatch, Json]>([
    [
      'A.1',
      { foo: 'bar' },
      [{ op: 'add', path: '/baz', value: 'qux' }],
      { baz: 'qux', foo: 'bar' },
    ],
    [
      'A.2',
      { foo: ['bar', 'baz'] },
      [{ op: 'add', path: '/foo/1', value: 'qux' }],
      { foo: ['bar', 'qux', 'baz'] },
    ],
    ['A.3', { baz: 'qux', foo: 'bar' }, [{ op: 'remove', path: '/baz' }], { foo: 'bar' }],
    [
      'A.4',
      { foo: ['bar', 'qux', 'baz'] },
      [{ op: 'remove', path: '/foo/1' }],
      { foo: ['bar', 'baz'] },
    ],
    [
      'A.5',
      { baz: 'qux', foo: 'bar' },
      [{ op: 'replace', path: '/baz', value: 'boo' }],
      { baz: 'boo', foo: 'bar' },
    ],
    [
      'A.6',
      { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
      [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
      { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
    ],
    [
      'A.7',
      { foo: ['all', 'grass', 'cows', 'eat'] },
      [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
      { foo: ['all', 'cows', 'eat', 'grass'] },
    ],
    [
      'A.8',
      { baz: 'qux', foo: ['a', 2, 'c'] },
      [
        { op: 'test', path: '/baz', value: 'qux' },
        { op: 'test', path: '/foo/1', value: 2 },
      ],
      { baz: 'qux', foo: ['a', 2, 'c'] },
    ],
    [
      'A.10',
      { foo: 'bar' },
      [{ op: 'add', path: '/child', value: { grandchild: {} } }],
      { foo: 'bar', child: { grandchild: {} } },
    ],
    ['A.14', { '/': 9, '~1': 10 }, [{ op: 'test', path: '/~01', value: 10 }], { '/': 9, '~1': 10 }],
    [
      'A.16',
      { foo: ['bar'] },
      [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
      { foo: ['bar', ['abc', 'def']] },
    ],
    ['root', { foo: 1 }, [{ op: 'replace', path: '', value: [1] }], [1]],
    ['empty key', { '': 1 }, [{ op: 'replace', path: '/', value: 2 }], { '': 2 }],
    ['null', { a: null }, [{ op: 'remove', path: '/a' }], {}],
  ])('does as the RFC says: %s', (_, doc, patch, expected) => {
    const given = toJson(doc, 'it');
    const result = applyPatch(given, patch);
    expect(result).toStrictEqual(expected);
    expect(given).toStrictEqual(doc);
    expect(isDeepFrozen(result)).toBe(true);
    const parsed = plainCopy(doc);
    expect(applyKnownPatch(parsed, patch)).toStrictEqual(expected);
    expect(parsed).toStrictEqual(doc);
  });

  test.each<[string, Json, unknown, string]>([
    ['a failed test', { baz: 'qux' }, { op: 'test', path: '/baz', value: 'bar' }, 'another one'],
    ['a test of another type', { a: 10 }, { op: 'test', path: '/a', value: '10' }, 'another one'],
    [
      'a missing parent',
      { foo: 'bar' },
      { op: 'add', path: '/baz/bat', value: 1 },
      'no object or array',
    ],
    ['a missing target', {}, { op: 'remove', path: '/a' }, 'nothing at that path'],
    [
      'a missing replacement target',
      [],
      { op: 'replace', path: '/0', value: 1 },
      'nothing at that path',
    ],
    ['an index past the end', [1], { op: 'add', path: '/2', value: 1 }, 'outside the array'],
    ['an index that is no number', [1], { op: 'add', path: '/x', value: 1 }, 'outside the array'],
    ['an index with a leading zero', [1, 2], { op: 'remove', path: '/01' }, 'nothing at that path'],
    ['a dash where nothing is', [1], { op: 'remove', path: '/-' }, 'nothing at that path'],
    [
      'a move into itself',
      { a: { b: 1 } },
      { op: 'move', from: '/a', path: '/a/b' },
      'into itself',
    ],
    ['a path that is no pointer', { a: 1 }, { op: 'remove', path: 'a' }, 'JSON Pointer'],
    ['a bad escape', { '~2': 1 }, { op: 'remove', path: '/~2' }, 'JSON Pointer'],
    ['an unknown operation', {}, { op: 'merge', path: '/a', value: 1 }, 'no such operation'],
    ['a missing value', {}, { op: 'add', path: '/a' }, 'value is missing'],
    [
      'a value that is not JSON',
      {},
      { op: 'add', path: '/a', value: new Date() },
      'instance of Date',
    ],
    ['no operation at all', {}, null, 'must be an object'],
    [
      'an inherited property',
      {},
      { op: 'replace', path: '/toString', value: 1 },
      'nothing at that path',
    ],
    [
      'what is behind an inherited property',
      {},
      { op: 'add', path: '/constructor/prototype/x', value: 1 },
      'no object or array',
    ],
    [
      'what is behind a missing __proto__',
      {},
      { op: 'add', path: '/__proto__/x', value: 1 },
      'no object or array',
    ],
    ['a remove of the whole', {}, { op: 'remove', path: '' }, 'leaves no document'],
  ])('refuses %s and names the operation', (_, doc, operation, reason) => {
    const ok: JsonPatchOperation = { op: 'test', path: '', value: doc };
    const patch = [ok, operation] as JsonPatch;
    expect(() => applyPatch(doc, patch)).toThrow(
      expect.objectContaining({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining(reason),
      }),
    );
    expect(() => applyPatch(doc, patch)).toThrow(
      reason.includes('no document') ? reason : 'Operation 1 of the patch',
    );
  });

  test('never changes a prototype', () => {
    const result = applyPatch({}, [
      { op: 'add', path: '/__proto__', value: { polluted: true } },
      { op: 'add', path: '/__proto__/more', value: 1 },
    ]);
    expect(JSON.stringify(result)).toBe('{"__proto__":{"polluted":true,"more":1}}');
    expect(Object.getPrototypeOf(result)).toBe(Object.prototype);
    expect(Object.hasOwn(Object.prototype, 'polluted')).toBe(false);
  });

  test('shares what the patch does not touch', () => {
    const doc = toJson({ a: { x: 1 }, b: { y: [1, { z: 2 }] }, c: [] }, 'it');
    const result = applyPatch(doc, [{ op: 'replace', path: '/b/y/0', value: 5 }]) as typeof doc;
    expect(result.a).toBe(doc.a);
    expect(result.c).toBe(doc.c);
    expect(result.b.y[1]).toBe(doc.b.y[1]);
    expect(result.b).not.toBe(doc.b);
  });

  test('a copied value is independent of where it came from', () => {
    const result = applyPatch({ a: { n: 1 }, list: [] }, [
      { op: 'add', path: '/a/m', value: {} },
      { op: 'copy', from: '/a', path: '/b' },
      { op: 'add', path: '/a/m/x', value: 1 },
      { op: 'add', path: '/b/m/y', value: 2 },
    ]);
    expect(result).toStrictEqual({ a: { n: 1, m: { x: 1 } }, b: { n: 1, m: { y: 2 } }, list: [] });
  });

  test('agrees with another implementation on every patch that fits its document', () => {
    fc.assert(
      fc.property(anyJson(theirKeys), fc.array(anyPick(), { maxLength: 8 }), (given, picks) => {
        let ours = toJson(given, 'it');
        const patch: JsonPatchOperation[] = [];
        for (const pick of picks) {
          const operation = fittingOperation(ours, pick);
          if (!operation) continue;
          patch.push(operation);
          ours = applyPatch(ours, [operation]);
        }
        const theirs = { doc: plainCopy(given) };
        const results = applyInPlace(theirs, plainCopy(patch.map(underDoc)));
        expect(results.filter((error) => error !== null)).toEqual([]);
        expect(canonical(ours)).toBe(canonical(theirs.doc));
        expect(canonical(applyPatch(given, patch))).toBe(canonical(ours));
      }),
      { numRuns: 400 },
    );
  });
});

describe('diffJson', () => {
  test('makes the one out of the other', () => {
    fc.assert(
      fc.property(anyJson(), anyJson(), (from, to) => {
        const patch = diffJson(from, to);
        expect(canonical(applyPatch(from, patch))).toBe(canonical(to));
        expect(patch.length === 0).toBe(jsonEqual(from, to));
      }),
      { numRuns: 300 },
    );
  });

  test('makes the one array out of the other, however it was edited', () => {
    const items = fc.array(fc.constantFrom<Json>(0, 1, 2, 'a', { x: 1 }, { x: 2 }, [1]), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(items, items, (from, to) => {
        expect(applyPatch(from, diffJson(from, to))).toStrictEqual(to);
      }),
      { numRuns: 300 },
    );
  });

  test.each<[string, Json, Json, JsonPatch]>([
    ['a removal at the front', [1, 2, 3, 4], [2, 3, 4], [{ op: 'remove', path: '/0' }]],
    ['an insertion in the middle', [1, 2, 3], [1, 9, 2, 3], [{ op: 'add', path: '/1', value: 9 }]],
    [
      'a change of one item',
      [{ n: 1, s: 'x' }, 2],
      [{ n: 3, s: 'x' }, 2],
      [{ op: 'replace', path: '/0/n', value: 3 }],
    ],
    [
      'two distant edits',
      [1, 2, 3, 4, 5, 6],
      [2, 3, 4, 5, 7, 6],
      [
        { op: 'remove', path: '/0' },
        { op: 'add', path: '/4', value: 7 },
      ],
    ],
    ['another type', { a: [] }, { a: {} }, [{ op: 'replace', path: '/a', value: {} }]],
    [
      'properties',
      { a: 1, b: 2 },
      { b: 2, 'c/d': 3 },
      [
        { op: 'add', path: '/c~1d', value: 3 },
        { op: 'remove', path: '/a' },
      ],
    ],
  ])('says %s shortly', (_, from, to, patch) => {
    expect(diffJson(from, to)).toStrictEqual(patch);
  });

  test('two edits in a long array stay two operations', () => {
    const from = Array.from({ length: 5000 }, (_, n) => ({ n, text: `item ${n}` }));
    const to = from.toSpliced(4000, 1).toSpliced(10, 0, { n: -1, text: 'new' });
    expect(diffJson(from, to)).toHaveLength(2);
  });

  test('replaces the whole where that is shorter than very many operations', () => {
    const from = Array.from({ length: 500 }, (_, n) => n);
    const to = from.map((n) => n + 1000);
    expect(diffJson({ list: from }, { list: to })).toStrictEqual([
      { op: 'replace', path: '/list', value: to },
    ]);
    const texts = from.map((n) => ({ n, text: 'long '.repeat(40) }));
    expect(
      diffJson(
        texts,
        texts.map(({ n, text }) => ({ n: -1 - n, text })),
      ),
    ).toHaveLength(500);
  });
});

describe('produce', () => {
  test('changes like the recipe would change a plain copy, and its patch leads to the same', () => {
    fc.assert(
      fc.property(anyJson(), fc.array(anyEdit(), { maxLength: 8 }), (value, edits) => {
        const doc = toJson(value, 'it');
        const plain = { doc: plainCopy(value) as unknown };
        const before = canonical(doc);
        const recipe = (draft: unknown): void => {
          for (const edit of edits) apply(edit, draft);
        };
        recipe(plain.doc);
        const produced = produce<unknown>(doc, recipe);
        expect(canonical(produced.value as Json)).toBe(canonical(plainCopy(plain.doc) as Json));
        expect(canonical(applyPatch(doc, produced.patch))).toBe(canonical(produced.value as Json));
        expect(isDeepFrozen(produced.value)).toBe(true);
        expect(canonical(doc)).toBe(before);
        if (produced.patch.length === 0) expect(produced.value).toBe(doc);
      }),
      { numRuns: 300 },
    );
  });

  test('keeps what is not touched', () => {
    const doc = toJson({ a: { deep: [1] }, b: { list: [{ n: 1 }, { n: 2 }] } }, 'it');
    const { value, patch } = produce(doc, (draft) => {
      const item = draft.b.list[1];
      if (item) item.n = 5;
      void draft.a.deep[0];
    });
    expect(patch).toStrictEqual([{ op: 'replace', path: '/b/list/1/n', value: 5 }]);
    expect(value.a).toBe(doc.a);
    expect(value.b.list[0]).toBe(doc.b.list[0]);
  });

  test('a change that changes nothing gives the same document and no patch', () => {
    const doc = toJson({ a: { n: 1 }, list: [1, 2] }, 'it');
    const { value, patch } = produce(doc, (draft) => {
      draft.a = { n: 1 };
      draft.list = [...draft.list];
    });
    expect(value).toBe(doc);
    expect(patch).toEqual([]);
  });

  test('a removal at the front of an array is one operation', () => {
    const doc = toJson({ window: Array.from({ length: 1000 }, (_, n) => ({ n })) }, 'it');
    const { patch } = produce(doc, (draft) => {
      draft.window.shift();
      draft.window.push({ n: 1000 });
    });
    expect(patch).toStrictEqual([
      { op: 'remove', path: '/window/0' },
      { op: 'add', path: '/window/999', value: { n: 1000 } },
    ]);
  });

  test('what the caller keeps of an assigned value does not reach the document', () => {
    const mine = { tags: ['a'] };
    const { value } = produce<{ item?: { tags: string[] } }>({}, (draft) => {
      draft.item = mine;
      mine.tags.push('b');
    });
    mine.tags.push('c');
    expect(value).toStrictEqual({ item: { tags: ['a', 'b'] } });
    expect(Object.isFrozen(mine)).toBe(false);
  });

  test('a property set to undefined is taken away', () => {
    const { value, patch } = produce<{ a?: number | undefined; b: number }>(
      { a: 1, b: 2 },
      (draft) => {
        draft.a = undefined;
      },
    );
    expect(value).toStrictEqual({ b: 2 });
    expect(patch).toStrictEqual([{ op: 'remove', path: '/a' }]);
  });

  test('a returned value replaces the document, also one that was not there', () => {
    const fresh = produce<{ n: number } | undefined>(undefined, () => ({ n: 1 }));
    expect(fresh).toStrictEqual({
      value: { n: 1 },
      patch: [{ op: 'replace', path: '', value: { n: 1 } }],
    });
    expect(produce<unknown>([1], () => 'text').value).toBe('text');
    expect(produce<number>(1, (n) => n + 1).value).toBe(2);
    expect(produce<unknown>({ a: 1 }, () => null).value).toBe(null);
    expect(produce<unknown>(undefined, () => undefined)).toStrictEqual({
      value: undefined,
      patch: [],
    });
  });

  test('a returned value may be new, or have parts of the draft in it, without a word on the console', () => {
    const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
    const doc = { n: 1, kept: { deep: [1, 2] } };
    const before = toJson(doc, 'it') as unknown as typeof doc;
    const next = produce(before, (draft) => ({ ...draft, n: draft.n + 1 }));
    expect(next.value).toStrictEqual({ ...doc, n: 2 });
    expect(next.value.kept).toBe(before.kept);
    expect(next.patch).toStrictEqual([{ op: 'replace', path: '/n', value: 2 }]);
    expect(
      produce(before, (draft) => ({ n: draft.n + 2, kept: { deep: [] } })).value,
    ).toStrictEqual({
      n: 3,
      kept: { deep: [] },
    });
    expect(() => produce<unknown>(before, () => circle())).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    );
    expect(warn).not.toHaveBeenCalled();
    warn.mockRestore();
  });

  test.each<[string, (draft: Record<string, unknown>) => unknown, string]>([
    ['a Date', (draft) => Object.assign(draft, { at: new Date() }), '/at'],
    ['a function', (draft) => Object.assign(draft, { f() {} }), '/f'],
    ['NaN', (draft) => Object.assign(draft, { n: Number.NaN }), '/n'],
    ['undefined in an array', (draft) => Object.assign(draft, { list: [undefined] }), '/list/0'],
    ['a circle', (draft) => Object.assign(draft, { self: circle() }), '/self'],
    ['a promise', async (draft) => Object.assign(draft, { a: 1 }), 'synchronous'],
  ])('refuses a recipe that assigns %s', (_, recipe, message) => {
    const doc = toJson({ kept: 1 }, 'it');
    expect(() => produce<Record<string, unknown>>(doc, (draft) => recipe(draft))).toThrow(
      expect.objectContaining({
        status: 'INVALID_ARGUMENT',
        message: expect.stringContaining(message),
      }),
    );
    expect(doc).toStrictEqual({ kept: 1 });
  });

  test('what a recipe throws comes through', () => {
    const thrown = new Error('mine');
    expect(() =>
      produce({ a: 1 }, () => {
        throw thrown;
      }),
    ).toThrow(thrown);
  });
});

function canonical(value: Json | undefined): string {
  const sorted = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node;
    if (Array.isArray(node)) return node.map(sorted);
    return Object.entries(node)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, child]) => [`key ${key}`, sorted(child)]);
  };
  return JSON.stringify(sorted(value)) ?? 'undefined';
}

function circle(): unknown {
  const self: Record<string, unknown> = {};
  self.self = self;
  return self;
}

type Pick = {
  readonly op: JsonPatchOperation['op'];
  readonly from: number;
  readonly to: number;
  readonly key: string;
  readonly value: Json;
};

function anyPick(): fc.Arbitrary<Pick> {
  return fc.record<Pick>({
    op: fc.constantFrom('add', 'replace', 'test', 'remove', 'move', 'copy'),
    from: fc.nat(20),
    to: fc.nat(20),
    key: fc.constantFrom('a', 'b', ...theirKeys),
    value: anyJson(theirKeys),
  });
}

/** An operation that can be applied to the document, if there is one for this pick. */
function fittingOperation(
  doc: Json,
  { op, from, to, key, value }: Pick,
): JsonPatchOperation | undefined {
  const places = [...placesOf(doc, [])];
  const [source, there] = places[from % places.length] ?? ['', doc];
  const containers = places.filter(([, child]) => typeof child === 'object' && child !== null);
  const [parent, container] = containers[to % Math.max(1, containers.length)] ?? [];
  if (op === 'test') return { op, path: source, value: there };
  if (op === 'replace') return { op, path: source, value };
  if (op === 'remove') return source === '' ? undefined : { op, path: source };
  if (parent === undefined) return undefined;
  const step = Array.isArray(container) ? (key === 'a' ? '-' : to % (container.length + 1)) : key;
  const path = `${parent}${toPointer([step])}`;
  if (op === 'add') return { op, path, value };
  if (op === 'copy') return { op, from: source, path };
  // Within one array the end moves when an item is taken out, so only moves between containers are made here.
  const sameParent = source.slice(0, source.lastIndexOf('/')) === parent;
  const inside = path === source || path.startsWith(`${source}/`);
  const shifts = parent.startsWith(source.slice(0, source.lastIndexOf('/') + 1));
  return source === '' || inside || sameParent || shifts ? undefined : { op, from: source, path };
}

function* placesOf(value: Json, path: readonly string[]): Generator<readonly [string, Json]> {
  yield [toPointer(path), value];
  if (typeof value !== 'object' || value === null) return;
  for (const [key, child] of Object.entries(value)) {
    if (child !== undefined) yield* placesOf(child, [...path, key]);
  }
}

function underDoc(operation: JsonPatchOperation): JsonPatchOperation {
  const path = `/doc${operation.path}`;
  return 'from' in operation
    ? { ...operation, path, from: `/doc${operation.from}` }
    : { ...operation, path };
}

type Edit = {
  readonly kind: 'set' | 'delete' | 'push' | 'shift' | 'splice' | 'reverse' | 'sort' | 'link';
  readonly path: readonly number[];
  readonly key: string;
  readonly value: Json;
};

function anyEdit(): fc.Arbitrary<Edit> {
  return fc.record({
    kind: fc.constantFrom(
      'set',
      'set',
      'delete',
      'push',
      'shift',
      'splice',
      'reverse',
      'sort',
      'link',
    ),
    path: fc.array(fc.nat(5), { maxLength: 3 }),
    key: fc.constantFrom('a', 'b', 'new', '0', '1'),
    value: anyJson(),
  });
}

function apply({ kind, path, key, value }: Edit, root: unknown): void {
  let target: unknown = root;
  for (const step of path) {
    if (typeof target !== 'object' || target === null) return;
    const children: unknown[] = Object.values(target);
    target = children[step % Math.max(1, children.length)];
  }
  if (typeof target !== 'object' || target === null) return;
  if (Array.isArray(target)) editArray(kind, target, value);
  else if (kind === 'delete') Reflect.deleteProperty(target, key);
  else if (kind === 'link') Reflect.set(target, key, Object.values(target)[0] ?? null);
  else Reflect.set(target, key, plainCopy(value));
}

function editArray(kind: Edit['kind'], target: unknown[], value: Json): void {
  const byText = (a: unknown, b: unknown): number =>
    JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
  if (kind === 'push') target.push(plainCopy(value));
  else if (kind === 'shift') target.shift();
  else if (kind === 'splice') target.splice(1, 1, plainCopy(value), 7);
  else if (kind === 'reverse') target.reverse();
  else if (kind === 'sort') target.sort(byText);
  else if (kind === 'link' && target.length > 0) target.push(target[0]);
  else if (target.length > 0) target[0] = plainCopy(value);
}
