import * as v from 'valibot';

/** Which messages of a state were read: those from position `from` on, of `total`. Apart from `message-page.ts`, which clients load. */
export const messageRange = v.object({ from: v.number(), total: v.number() });
