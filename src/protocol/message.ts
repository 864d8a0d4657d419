import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';

const metadata = v.optional(jsonObject);

const toolRequest = v.object({
  /** The name of the tool. */
  name: v.string(),
  /** Identifies the call: tells two calls of one tool apart. */
  ref: v.optional(v.string()),
  /** The arguments. */
  input: v.optional(jsonValue),
});

const toolResponse = v.object({
  /** The name of the tool. */
  name: v.string(),
  /** The `ref` of the request. */
  ref: v.optional(v.string()),
  /** The result, as data for the model. */
  output: v.optional(jsonValue),
  /** Parts of the result that are not data, such as images. */
  content: v.optional(v.array(jsonObject)),
});

const textPart = v.object({
  /** The text. */
  text: v.string(),
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
const mediaPart = v.object({
  /** The content: `url` can be a `data:` URL. */
  media: v.object({ url: v.string(), contentType: v.optional(v.string()) }),
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
export const toolRequestPart = v.object({
  /** The tool call. */
  toolRequest,
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
export const toolResponsePart = v.object({
  /** The result of a tool call. */
  toolResponse,
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
const dataPart = v.object({
  /** Any JSON. */
  data: jsonValue,
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
const customPart = v.object({
  /** Other content, such as the sources of an answer. */
  custom: jsonObject,
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
const reasoningPart = v.object({
  /** The text of the reasoning. */
  reasoning: v.string(),
  /** Further facts as JSON, for providers and your code. */
  metadata,
});
const resourcePart = v.object({
  /** The address of the resource. */
  resource: v.object({ uri: v.string() }),
  /** Further facts as JSON, for providers and your code. */
  metadata,
});

export const part: v.GenericSchema<unknown, Part> = unionByKey(
  [
    textPart,
    mediaPart,
    toolRequestPart,
    toolResponsePart,
    reasoningPart,
    resourcePart,
    customPart,
    dataPart,
  ],
  'Expected a part with one of: text, media, toolRequest, toolResponse, data, custom, reasoning, resource',
);

export const role = v.picklist(['system', 'user', 'model', 'tool']);

export const message = v.object({
  /** The sender. */
  role,
  /** The parts of the message, in order. */
  content: v.array(part),
  /** Further facts as JSON, for providers and your code. */
  metadata,
});

/** The sender of a message. */
export type Role = v.InferOutput<typeof role>;
/** A request of the model to run a tool. */
export interface ToolRequest extends v.InferOutput<typeof toolRequest> {}
/** Text of a message or artifact. */
export interface TextPart extends v.InferOutput<typeof textPart> {}
/** An image, audio, or another file. */
export interface MediaPart extends v.InferOutput<typeof mediaPart> {}
/** A tool call of the model. */
export interface ToolRequestPart extends v.InferOutput<typeof toolRequestPart> {}
/** The result of a tool call, for the model. */
export interface ToolResponsePart extends v.InferOutput<typeof toolResponsePart> {}
/** Structured data. */
export interface DataPart extends v.InferOutput<typeof dataPart> {}
/** Other content. */
export interface CustomPart extends v.InferOutput<typeof customPart> {}
/** Reasoning of the model. */
export interface ReasoningPart extends v.InferOutput<typeof reasoningPart> {}
/** A reference to a resource. */
export interface ResourcePart extends v.InferOutput<typeof resourcePart> {}
/** One piece of a message or artifact; exactly one of its content fields is set. */
export type Part =
  | TextPart
  | MediaPart
  | ToolRequestPart
  | ToolResponsePart
  | ReasoningPart
  | ResourcePart
  | CustomPart
  | DataPart;
/** One message of a conversation. */
export interface Message extends v.InferOutput<typeof message> {}

/** An object schema that one of its required keys tells from the others. */
type ObjectOption = v.ObjectSchema<v.ObjectEntries, undefined>;

/**
 * A union of object schemas in which the keys of a value say which options can fit: each option is tried only when the
 * value has the option's first key. A plain union tries all of them, and builds an issue for each that does not fit.
 */
function unionByKey<const Options extends readonly ObjectOption[]>(
  options: Options,
  message: string,
): v.UnionSchema<Options, string> {
  const union = v.union(options, message);
  const tryAll = union['~run'].bind(union);
  const keyed = options.map((option) => ({ option, key: Object.keys(option.entries)[0] ?? '' }));
  const run: (typeof union)['~run'] = (dataset, config) => {
    const { value } = dataset;
    if (typeof value !== 'object' || value === null) return tryAll(dataset, config);
    let only: ReturnType<typeof run> | undefined;
    let tried = 0;
    for (const { option, key } of keyed) {
      if (!(key in value)) continue;
      const result = option['~run']({ value }, config) as ReturnType<typeof run>;
      if (result.issues === undefined) return result;
      only = result;
      tried++;
    }
    // With one candidate its own issue says most.
    return tried === 1 && only ? only : tryAll(dataset, config);
  };
  return Object.defineProperty(union, '~run', { value: run });
}
