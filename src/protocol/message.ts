import * as v from 'valibot';
import { jsonObject, jsonValue } from './json-value.ts';
import { unionByKey } from './union-by-key.ts';

const metadata = v.optional(jsonObject);

/** A request of the model that a tool be run. `ref` tells two calls of one tool apart. */
const toolRequest = v.object({
  name: v.string(),
  ref: v.optional(v.string()),
  input: v.optional(jsonValue),
});

/** What a tool answered: `output` for the model to read as data, `content` for media and the like. */
const toolResponse = v.object({
  name: v.string(),
  ref: v.optional(v.string()),
  output: v.optional(jsonValue),
  content: v.optional(v.array(jsonObject)),
});

const textPart = v.object({ text: v.string(), metadata });
const mediaPart = v.object({
  media: v.object({ url: v.string(), contentType: v.optional(v.string()) }),
  metadata,
});
export const toolRequestPart = v.object({ toolRequest, metadata });
export const toolResponsePart = v.object({ toolResponse, metadata });
const dataPart = v.object({ data: jsonValue, metadata });
const customPart = v.object({ custom: jsonObject, metadata });
const reasoningPart = v.object({ reasoning: v.string(), metadata });
const resourcePart = v.object({ resource: v.object({ uri: v.string() }), metadata });

/** One piece of a message or artifact; exactly one of its content fields is set. */
export const part = unionByKey(
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

/** One message of a conversation. */
export const message = v.object({ role, content: v.array(part), metadata });

export type Role = v.InferOutput<typeof role>;
export interface ToolRequest extends v.InferOutput<typeof toolRequest> {}
export interface ToolResponse extends v.InferOutput<typeof toolResponse> {}
export interface TextPart extends v.InferOutput<typeof textPart> {}
export interface MediaPart extends v.InferOutput<typeof mediaPart> {}
export interface ToolRequestPart extends v.InferOutput<typeof toolRequestPart> {}
export interface ToolResponsePart extends v.InferOutput<typeof toolResponsePart> {}
export interface DataPart extends v.InferOutput<typeof dataPart> {}
export interface CustomPart extends v.InferOutput<typeof customPart> {}
export interface ReasoningPart extends v.InferOutput<typeof reasoningPart> {}
export interface ResourcePart extends v.InferOutput<typeof resourcePart> {}
export type Part = v.InferOutput<typeof part>;
export interface Message extends v.InferOutput<typeof message> {}
