import { type App, textOf } from 'waymark';

const documents = [
  {
    title: 'Tide tables',
    text: 'Tides follow the moon: two highs and two lows in about 25 hours.',
  },
  { title: 'Harbour log', text: 'Spring tides are highest in the week after a full moon.' },
  { title: 'Lighthouse book', text: 'The lamp was lit by oil until 1911.' },
] as const;

// #region archive
/** Another team's agent, on its own server: finds documents by words of the question. */
export function defineArchive(app: App) {
  return app.defineCustomAgent(
    {
      name: 'archive',
      description: 'Finds documents in the archive. Say what you are looking for.',
    },
    async (session) => {
      await session.run(({ message }) => {
        const words =
          textOf(message)
            .toLowerCase()
            .match(/\w{4,}/g) ?? [];
        const found = documents.filter(({ title, text }) =>
          words.some((word) => `${title} ${text}`.toLowerCase().includes(word.replace(/s$/, ''))),
        );
        const lines = found.map(({ title, text }) => `${title}: ${text}`);
        const text = lines.join('\n') || 'The archive has nothing about this.';
        session.addMessages({ role: 'model', content: [{ text }] });
      });
    },
  );
}
// #endregion
