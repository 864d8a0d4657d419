import fc from 'fast-check';

/** How a turn changes the state. */
export type Change = 'append' | 'custom' | 'artifact' | 'trim' | 'rewrite' | 'clear';

/** One step of a random history. Numbers select among the existing items when the step is applied. */
export type Command =
  | {
      readonly kind: 'turn';
      readonly session: number;
      /** Continues from any snapshot instead of the head. */
      readonly from: number | undefined;
      /** Starts another root instead. */
      readonly root: boolean;
      readonly change: Change;
      readonly size: number;
      readonly outcome: 'listed' | 'unlisted' | 'failed' | 'interrupted';
      /** Uses the result of the last commit instead of loading. */
      readonly cached: boolean;
      /** Creates a mid-turn snapshot. */
      readonly middle: boolean;
    }
  | {
      readonly kind: 'detached';
      readonly session: number;
      readonly outcome: 'succeeded' | 'failed' | 'aborted';
      readonly checkpoint: boolean;
    }
  | { readonly kind: 'dies'; readonly session: number }
  | { readonly kind: 'restore' | 'fork'; readonly pick: number }
  | { readonly kind: 'label'; readonly pick: number; readonly label: string | null }
  | { readonly kind: 'prune'; readonly keepLast: number; readonly keepLabelled: boolean }
  | { readonly kind: 'erase' | 'reimport'; readonly session: number };

const session = fc.nat(4);
const pick = fc.nat(1000);

const turn = fc.record({
  kind: fc.constant('turn' as const),
  session,
  from: fc.option(pick, { freq: 4, nil: undefined }),
  root: fc.nat(9).map((n) => n === 0),
  change: fc.constantFrom<Change[]>(
    'append',
    'append',
    'append',
    'custom',
    'artifact',
    'trim',
    'rewrite',
    'clear',
  ),
  size: fc.nat(5),
  outcome: fc.constantFrom('listed', 'listed', 'listed', 'unlisted', 'failed', 'interrupted'),
  cached: fc.boolean(),
  middle: fc.nat(5).map((n) => n === 0),
});

const detached = fc.record({
  kind: fc.constant('detached' as const),
  session,
  outcome: fc.constantFrom('succeeded', 'failed', 'aborted'),
  checkpoint: fc.boolean(),
});

/** Random steps; about half of them are turns. */
export const commands: fc.Arbitrary<Command[]> = fc.array(
  fc.oneof(
    { weight: 12, arbitrary: turn },
    { weight: 2, arbitrary: detached },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('dies' as const), session }) },
    { weight: 3, arbitrary: fc.record({ kind: fc.constant('restore' as const), pick }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('fork' as const), pick }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('label' as const),
        pick,
        label: fc.constantFrom('a', 'b', null),
      }),
    },
    {
      weight: 2,
      arbitrary: fc.record({
        kind: fc.constant('prune' as const),
        keepLast: fc.nat(5),
        keepLabelled: fc.boolean(),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('erase' as const), session }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('reimport' as const), session }) },
  ),
  { minLength: 1, maxLength: 40, size: 'max' },
);
