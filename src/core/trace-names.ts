// OpenTelemetry's GenAI names still move and are deprecated in its package of names, so they are written here, once.

/** Attribute names of the GenAI semantic conventions. */
export const genAi = {
  operation: 'gen_ai.operation.name',
  provider: 'gen_ai.provider.name',
  agentName: 'gen_ai.agent.name',
  agentDescription: 'gen_ai.agent.description',
  agentVersion: 'gen_ai.agent.version',
  conversationId: 'gen_ai.conversation.id',
  requestModel: 'gen_ai.request.model',
  responseModel: 'gen_ai.response.model',
  responseId: 'gen_ai.response.id',
  finishReasons: 'gen_ai.response.finish_reasons',
  inputTokens: 'gen_ai.usage.input_tokens',
  outputTokens: 'gen_ai.usage.output_tokens',
  cacheReadTokens: 'gen_ai.usage.cache_read.input_tokens',
  cacheWriteTokens: 'gen_ai.usage.cache_write.input_tokens',
  /** The earlier name of `cacheWriteTokens`, which backends still read. */
  cacheCreationTokens: 'gen_ai.usage.cache_creation.input_tokens',
  reasoningTokens: 'gen_ai.usage.reasoning.output_tokens',
  tokenType: 'gen_ai.token.type',
  temperature: 'gen_ai.request.temperature',
  topP: 'gen_ai.request.top_p',
  topK: 'gen_ai.request.top_k',
  maxTokens: 'gen_ai.request.max_tokens',
  frequencyPenalty: 'gen_ai.request.frequency_penalty',
  presencePenalty: 'gen_ai.request.presence_penalty',
  stopSequences: 'gen_ai.request.stop_sequences',
  seed: 'gen_ai.request.seed',
  reasoning: 'gen_ai.request.reasoning.level',
  outputType: 'gen_ai.output.type',
  timeToFirstChunk: 'gen_ai.response.time_to_first_chunk',
  inputMessages: 'gen_ai.input.messages',
  outputMessages: 'gen_ai.output.messages',
  toolName: 'gen_ai.tool.name',
  toolType: 'gen_ai.tool.type',
  toolDescription: 'gen_ai.tool.description',
  toolArguments: 'gen_ai.tool.call.arguments',
  toolResult: 'gen_ai.tool.call.result',
  toolCallId: 'gen_ai.tool.call.id',
} as const;

/** Attribute names of requests to MCP servers, on the spans of tools and of our own server. */
export const mcpNames = {
  method: 'mcp.method.name',
  protocolVersion: 'mcp.protocol.version',
  sessionId: 'mcp.session.id',
  resourceUri: 'mcp.resource.uri',
  requestId: 'jsonrpc.request.id',
  statusCode: 'rpc.response.status_code',
  transport: 'network.transport',
  serverAddress: 'server.address',
  serverPort: 'server.port',
} as const;

/** Values of `gen_ai.operation.name`; a span is called after its operation and its object. */
export const operations = {
  invokeAgent: 'invoke_agent',
  executeTool: 'execute_tool',
  undoTool: 'undo_tool',
  chat: 'chat',
} as const;

/** Attribute names that back ends group traces by. */
export const backend = { sessionId: 'session.id', userId: 'user.id' } as const;

/** Our own attribute names, and those that Genkit's tools look for. */
export const attributes = {
  sessionId: 'waymark.session.id',
  snapshotId: 'waymark.snapshot.id',
  snapshotIds: 'waymark.snapshot.ids',
  turnIndex: 'waymark.turn.index',
  finishReason: 'waymark.finish_reason',
  agent: 'waymark.agent',
  expectedCachedTokens: 'waymark.usage.expected_cached_tokens',
  genkitSnapshotId: 'genkit:metadata:snapshotId',
  genkitAgent: 'genkit:metadata:agent',
  errorType: 'error.type',
} as const;
