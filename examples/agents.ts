import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { chooseModel } from './choose-model.ts';
import { defineNewsroom } from './newsroom.ts';
import { defineResearcher } from './researcher.ts';
import { defineStory } from './story.ts';
import { defineTripPlanner } from './trip-planner.ts';
import { defineWriter } from './writer.ts';

const { model, note } = await chooseModel();

/** All examples in one app, with one SQLite file as the store. */
export const app = waymark({ store: sqliteStore('waymark.db') });

/** Shown in the terminal and in Studio when the app is served. */
export const modelNote = note;

defineTripPlanner(app, model);
defineStory(app, model);
const writer = defineWriter(app, model);
const researcher = defineResearcher(app);
defineNewsroom(app, { writer, researcher, ...(model !== undefined && { model }) });
