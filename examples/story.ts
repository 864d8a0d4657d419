import type { App, ModelRef } from 'waymark';
import { type ScriptedReply, scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const world = z.object({ place: z.string(), carrying: z.array(z.string()), steps: z.number() });

/** A story with branches: restore any turn, try something else, and compare the two branches. */
export function defineStory(app: App, model: ModelRef = script()) {
  const move = app.defineTool(
    {
      name: 'move',
      description: 'Takes the reader to another place, perhaps with something in hand.',
      input: z.object({ place: z.string(), take: z.string().optional() }),
      state: world,
    },
    ({ place, take }, { session }) => {
      session.updateCustom((draft) => {
        draft.place = place;
        draft.steps++;
        if (take !== undefined && !draft.carrying.includes(take)) draft.carrying.push(take);
      });
      return { place, carrying: session.custom.carrying };
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
  dark: 'The key turns, but behind the door it is dark, and the stairs are steep. A *lantern* would help. Or go back a few turns.',
  end: 'The key turns. Your lantern climbs the stairs ahead of you, up to a room with one window, and the whole garden lies below: every way you took, and every way you did not. **The end.**',
};

/** The tower opens with the key, and can be climbed with the lantern. */
function sceneOf(result: unknown): string {
  const { place, carrying } = moved.parse(result);
  const has = (thing: string): boolean => carrying.includes(thing);
  const isOpen = place === 'tower' && has('silver key');
  const scene = isOpen ? (has('lantern') ? 'end' : 'dark') : place;
  return scenes[scene] ?? 'Nothing here.';
}

const moved = world.pick({ place: true, carrying: true });

function script(): ModelRef {
  return scriptedModel(
    {
      patterns: [
        [/pond/i, { toolCalls: [{ name: 'move', input: { place: 'pond' } }] }],
        [/tower/i, { toolCalls: [{ name: 'move', input: { place: 'tower' } }] }],
        [/lantern/i, { toolCalls: [{ name: 'move', input: { place: 'gate', take: 'lantern' } }] }],
        [/dive/i, { toolCalls: [{ name: 'move', input: { place: 'deep', take: 'silver key' } }] }],
      ],
      afterTools: (_, [result]) => spoken(sceneOf(result)),
      otherwise: spoken(
        'Wind in the leaves. You may take the *lantern*, walk to the *pond*, or climb to the *tower*.',
      ),
    },
    { name: 'script' },
  );
}

/** Splits a text into words, as a model would stream it. */
function spoken(text: string): ScriptedReply {
  return { chunks: text.match(/\S+\s*/g) ?? [], chunkDelay: 15 };
}
