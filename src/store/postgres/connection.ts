import type { PoolClient } from 'pg';

/** A connection for several statements. One that breaks between two of them says so by an event that must be heard. */
export async function take(pool: { connect(): Promise<PoolClient> }): Promise<PoolClient> {
  const client = await pool.connect();
  client.on('error', ignore);
  return client;
}

export function give(client: PoolClient, isBroken = false): void {
  client.off('error', ignore);
  client.release(isBroken);
}

/** A listener that does nothing; also the handler of rejections that can be ignored. */
export function ignore(): undefined {
  return undefined;
}
