import { fromAnswer } from '../http/fault.ts';
import type { FeedBatch } from './feed.ts';

/** Throws the error that a feed begins with, so that it can still be answered with its status. */
export function throwFirstError({ value }: IteratorResult<FeedBatch>): void {
  const [first] = value ?? [];
  if (first?.type === 'error') throw fromAnswer(first.error);
}

/** A feed whose first batch has been asked for already. */
export async function* startingWith<T>(
  first: Promise<IteratorResult<T>>,
  rest: AsyncGenerator<T>,
): AsyncGenerator<T> {
  const { value, done } = await first;
  if (done) return;
  yield value;
  yield* rest;
}
