/** Any value that JSON can represent. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A JSON object; a property that is `undefined` counts as missing. */
export type JsonObject = { readonly [key: string]: Json | undefined };
