import type { DescribedPaths, DescribedRoute } from '../http/protocol-document.ts';

const text = { type: 'string' };
const anything = { type: 'object' };
const many = { type: 'array', items: anything };

const routes: readonly DescribedRoute[] = [
  {
    name: 'uiTurn',
    method: 'POST',
    path: '/ui/:agent',
    summary: 'Runs a turn for `useChat`, and streams its UI messages.',
    body: 'UiRequest',
    answer: 'UiMessages',
    events: 'always',
  },
  {
    name: 'uiResume',
    method: 'GET',
    path: '/ui/:agent/:chat/stream',
    summary: 'The running turn of a chat from its beginning; 204 if none runs.',
    answer: 'UiMessages',
    events: 'always',
  },
  {
    name: 'uiStop',
    method: 'POST',
    path: '/ui/:agent/:chat/stop',
    summary: 'Stops the running turn of a chat.',
  },
  {
    name: 'uiMessages',
    method: 'GET',
    path: '/ui/:agent/:chat/messages',
    summary: 'The stored messages of a chat, as UI messages.',
    answer: 'UiMessages',
  },
];

/** The routes for `useChat`, as the OpenAPI document of the server describes them. */
export const uiPaths: DescribedPaths = {
  routes,
  schemas: {
    UiRequest: {
      type: 'object',
      properties: {
        id: { ...text, description: 'The id of the chat, which is that of the session.' },
        messages: { ...many, minItems: 1 },
        trigger: { enum: ['submit-message', 'regenerate-message'] },
        messageId: text,
      },
      required: ['id', 'messages'],
    },
    UiMessages: many,
  },
};
