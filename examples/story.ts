import type { App, ModelRef } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const world = z.object({ place: z.string(), carrying: z.array(z.string()), steps: z.number() });

/** A story to branch: go back to any turn, take another way, and compare the two. */
export function defineStory(app: App, model: ModelRef = script()) {
  const move = app.defineTool(
    {
      name: 'move',
      description: 'Takes the reader to another place, perhaps with something in hand.',
      input: z.object({ place: z.string(), take: z.string().optional() }),
    },
    ({ place, take }, { session }) => {
      session?.updateCustom((draft) => {
        const state = draft as z.infer<typeof world>;
        state.place = place;
        state.steps++;
        if (take !== undefined && !state.carrying.includes(take)) state.carrying.push(take);
      });
      return place;
    },
  );
  return app.defineAgent({
    name: 'story',
    description: 'An adventure in which every choice can be taken back. Begin with “Look around”.',
    model,
    system: 'You tell a short adventure. The reader is at {{@state.place}}.',
    tools: [move],
    messages: [
      {
        role: 'model',
        content: [
          {
            text: 'You stand at the **gate** of an old garden. There is a *lantern* on the wall, a path to the *pond*, and stairs to the *tower*.',
          },
        ],
      },
    ],
    state: world,
    initialState: { place: 'gate', carrying: [], steps: 0 },
  });
}

const scenes: Readonly<Record<string, string>> = {
  pond: 'The water is black and very still. Something silver lies at the bottom. You can *dive*, or go on to the *tower*.',
  tower:
    'A door without a handle. Through the keyhole: light. You could use a *lantern*, or go down to the *pond*.',
  gate: 'The gate again. The lantern is gone from the wall. *Pond* or *tower*?',
  deep: 'Cold. Your hand closes around a silver key. Now the *tower* might open.',
};

function script(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [/pond/i, { toolCalls: [{ name: 'move', input: { place: 'pond' } }] }],
        [/tower/i, { toolCalls: [{ name: 'move', input: { place: 'tower' } }] }],
        [/lantern/i, { toolCalls: [{ name: 'move', input: { place: 'gate', take: 'lantern' } }] }],
        [/dive/i, { toolCalls: [{ name: 'move', input: { place: 'deep', take: 'silver key' } }] }],
      ],
      afterTools: (_, [place]) => ({
        chunks: (scenes[String(place)] ?? 'Nothing here.').split(/(?<= )/),
        chunkDelayMs: 15,
      }),
      otherwise: {
        chunks:
          'Wind in the leaves. You may take the *lantern*, walk to the *pond*, or climb to the *tower*.'.split(
            /(?<= )/,
          ),
        chunkDelayMs: 15,
      },
    },
    { name: 'script' },
  );
}
