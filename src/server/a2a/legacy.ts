import type { Fields } from '../http/json-rpc.ts';

/** The methods of 0.3 by their names of 1.0. */
export const legacyMethods: Readonly<Record<string, string>> = {
  'message/send': 'SendMessage',
  'message/stream': 'SendStreamingMessage',
  'tasks/get': 'GetTask',
  'tasks/cancel': 'CancelTask',
  'tasks/resubscribe': 'SubscribeToTask',
  'tasks/pushNotificationConfig/set': 'CreateTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/get': 'GetTaskPushNotificationConfig',
  'tasks/pushNotificationConfig/list': 'ListTaskPushNotificationConfigs',
  'tasks/pushNotificationConfig/delete': 'DeleteTaskPushNotificationConfig',
  'agent/getAuthenticatedExtendedCard': 'GetExtendedAgentCard',
};

/** The params of a method of 0.3 in the shape of 1.0. What is not as expected is left for the check of that shape. */
export function fromLegacyParams(method: string, params: Fields): Fields {
  if (method === 'SendMessage' || method === 'SendStreamingMessage') {
    const { configuration } = params;
    return {
      ...params,
      message: fromLegacyMessage(params.message),
      configuration: isFields(configuration)
        ? fromLegacyConfiguration(configuration)
        : configuration,
    };
  }
  if (method === 'CreateTaskPushNotificationConfig') {
    const { taskId, pushNotificationConfig } = params;
    return isFields(pushNotificationConfig)
      ? { ...fromLegacyPush(pushNotificationConfig), taskId }
      : { taskId };
  }
  if (!method.endsWith('PushNotificationConfig') && !method.endsWith('PushNotificationConfigs')) {
    return params;
  }
  return { taskId: params.id, id: params.pushNotificationConfigId };
}

function fromLegacyMessage(message: unknown): unknown {
  if (!isFields(message)) return message;
  const { role, parts } = message;
  return {
    ...message,
    role: role === 'user' ? 'ROLE_USER' : role,
    parts: Array.isArray(parts) ? parts.map(fromLegacyPart) : parts,
  };
}

function fromLegacyPart(part: unknown): unknown {
  if (!isFields(part)) return part;
  const { kind, text, data, file } = part;
  if (kind === 'text') return { text };
  if (kind === 'data') return { data };
  if (kind !== 'file' || !isFields(file)) return {};
  return { raw: file.bytes, url: file.uri, mediaType: file.mimeType, filename: file.name };
}

function fromLegacyConfiguration(configuration: Fields): Fields {
  const { blocking, historyLength, pushNotificationConfig } = configuration;
  return {
    historyLength,
    returnImmediately: blocking === false,
    taskPushNotificationConfig: isFields(pushNotificationConfig)
      ? fromLegacyPush(pushNotificationConfig)
      : undefined,
  };
}

function fromLegacyPush({ id, url, token, authentication }: Fields): Fields {
  if (!isFields(authentication)) return { id, url, token };
  const { schemes, credentials } = authentication;
  const scheme = Array.isArray(schemes) ? schemes[0] : undefined;
  return { id, url, token, authentication: { scheme, credentials } };
}

/** A result of 1.0 in the shape of 0.3. */
export function toLegacyResult(method: string, result: Fields): unknown {
  switch (method) {
    case 'SendMessage':
      return toLegacyTask(result.task as Fields);
    case 'GetTask':
    case 'CancelTask':
      return toLegacyTask(result);
    case 'CreateTaskPushNotificationConfig':
    case 'GetTaskPushNotificationConfig':
      return toLegacyPush(result);
    case 'ListTaskPushNotificationConfigs':
      return (result.configs as readonly Fields[]).map(toLegacyPush);
    case 'DeleteTaskPushNotificationConfig':
      return null;
    default:
      return result;
  }
}

const finalStates = ['completed', 'failed', 'canceled', 'rejected', 'input-required'];

export function toLegacyEvent({ task, statusUpdate, artifactUpdate }: Fields): Fields {
  if (isFields(task)) return toLegacyTask(task);
  if (isFields(artifactUpdate)) {
    const { artifact, ...rest } = artifactUpdate;
    return { kind: 'artifact-update', ...rest, artifact: toLegacyArtifact(artifact as Fields) };
  }
  const { status, ...rest } = statusUpdate as Fields;
  const shown = toLegacyStatus(status as Fields);
  return {
    kind: 'status-update',
    ...rest,
    status: shown,
    final: finalStates.includes(String(shown.state)),
  };
}

export function toLegacyTask({ status, artifacts, history, ...task }: Fields): Fields {
  return {
    kind: 'task',
    ...task,
    status: toLegacyStatus(status as Fields),
    artifacts: (artifacts as readonly Fields[] | undefined)?.map(toLegacyArtifact) ?? [],
    history: (history as readonly Fields[] | undefined)?.map(toLegacyMessage) ?? [],
  };
}

function toLegacyStatus({ state, message, ...rest }: Fields): Fields {
  return {
    state: String(state).replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-'),
    ...rest,
    message: isFields(message) ? toLegacyMessage(message) : undefined,
  };
}

function toLegacyMessage({ role, parts, ...message }: Fields): Fields {
  return {
    kind: 'message',
    ...message,
    role: role === 'ROLE_USER' ? 'user' : 'agent',
    parts: (parts as readonly Fields[]).map(toLegacyPart),
  };
}

function toLegacyArtifact({ parts, ...artifact }: Fields): Fields {
  return { ...artifact, parts: (parts as readonly Fields[]).map(toLegacyPart) };
}

function toLegacyPart({ text, data, raw, url, mediaType, filename, metadata }: Fields): Fields {
  if (text !== undefined) return { kind: 'text', text, metadata };
  // In 0.3 data is an object.
  if (data !== undefined)
    return { kind: 'data', data: isFields(data) ? data : { value: data }, metadata };
  const content = raw === undefined ? { uri: url } : { bytes: raw };
  return { kind: 'file', file: { ...content, mimeType: mediaType, name: filename } };
}

function toLegacyPush({ taskId, id, url, token, authentication }: Fields): Fields {
  if (!isFields(authentication)) return { taskId, pushNotificationConfig: { id, url, token } };
  const { scheme, credentials } = authentication;
  const schemes = scheme === undefined ? [] : [scheme];
  const pushNotificationConfig = { id, url, token, authentication: { schemes, credentials } };
  return { taskId, pushNotificationConfig };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
