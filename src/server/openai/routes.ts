export const openAiPath = '/openai/v1';

export const openAiRoutes = {
  listModels: { method: 'GET', path: '/models' },
  getModel: { method: 'GET', path: '/models/:model' },
  createChatCompletion: { method: 'POST', path: '/chat/completions' },
  createResponse: { method: 'POST', path: '/responses' },
  compactResponse: { method: 'POST', path: '/responses/compact' },
  countInputTokens: { method: 'POST', path: '/responses/input_tokens' },
  getResponse: { method: 'GET', path: '/responses/:response' },
  deleteResponse: { method: 'DELETE', path: '/responses/:response' },
  cancelResponse: { method: 'POST', path: '/responses/:response/cancel' },
  listInputItems: { method: 'GET', path: '/responses/:response/input_items' },
  createConversation: { method: 'POST', path: '/conversations' },
  getConversation: { method: 'GET', path: '/conversations/:conversation' },
  updateConversation: { method: 'POST', path: '/conversations/:conversation' },
  deleteConversation: { method: 'DELETE', path: '/conversations/:conversation' },
  listItems: { method: 'GET', path: '/conversations/:conversation/items' },
  createItems: { method: 'POST', path: '/conversations/:conversation/items' },
  getItem: { method: 'GET', path: '/conversations/:conversation/items/:item' },
  deleteItem: { method: 'DELETE', path: '/conversations/:conversation/items/:item' },
} as const satisfies Record<string, { readonly method: string; readonly path: string }>;

export type OpenAiRoute = keyof typeof openAiRoutes;
