import { waymark } from '../../src/index.ts';
import { fileStore } from '../../src/store/file/index.ts';

/** An agent on a file store whose turns add one message of the user and one of the model. */
export function openOnFiles(directory: string) {
  const store = fileStore(directory, { durability: 'normal' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'young' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'm'.repeat(400) }] });
    });
  });
  return { store, app, agent };
}
