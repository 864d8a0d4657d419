import { openQueueApp } from './agents.ts';

/** A file of agents, as the command line takes it. */
export const { app } = openQueueApp({ connectionString: process.env.DATABASE_URL ?? '' });
