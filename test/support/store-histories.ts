import { afterEach, beforeEach, describe } from 'vitest';
import { createKit, type Kit, type OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { randomContract } from '../../src/testing/store-contract/random.ts';

/** The random histories of the conformance suite alone, for runs that repeat only them. */
export function storeHistories(
  name: string,
  open: () => Promise<OpenedStore>,
  { runs }: { readonly runs: number },
): void {
  describe(`${name} store`, () => {
    let opened: OpenedStore;
    let kit: Kit;
    beforeEach(async () => {
      opened = await open();
      await opened.store.open?.();
      kit = createKit(opened);
    });
    afterEach(() => opened.close());
    randomContract(() => kit, runs);
  });
}
