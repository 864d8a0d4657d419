import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { defineDesk } from './desk.ts';
import { model } from './model.ts';

/** The app that `waymark dev`, `waymark chat` and `waymark serve` load. */
export const app = waymark({ model, store: sqliteStore('waymark.db') });

export const desk = defineDesk(app);
