// OpenTelemetry's GenAI names still move and are deprecated in its package of names, so they are written here, once.

/** Attribute names of the GenAI semantic conventions. */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentDescription: 'gen_ai.agent.description',
  conversationId: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  toolName: 'gen_ai.tool.name',
  toolCallId: 'gen_ai.tool.call.id',
} as const;

/** Values of `gen_ai.operation.name`; a span is called after its operation and its object. */
export const operations = {
  invokeAgent: 'invoke_agent',
  executeTool: 'execute_tool',
  chat: 'chat',
} as const;

/** Our own attribute names, and those that Genkit's tools look for. */
export const attributes = {
  sessionId: 'waymark.session.id',
  snapshotId: 'waymark.snapshot.id',
  snapshotIds: 'waymark.snapshot.ids',
  turnIndex: 'waymark.turn.index',
  genkitSnapshotId: 'genkit:metadata:snapshotId',
  genkitAgent: 'genkit:metadata:agent',
  errorType: 'error.type',
} as const;
