import { untrustedSchema } from '../../core/schema/untrusted-schema.ts';
import type { GenerateOptions } from '../../generate/generate-options.ts';
import { toParts } from '../../generate/prompt/template.ts';
import type { TurnSettings } from '../../protocol/turn.ts';

/** The settings of a request as one turn wants them: instructions are added, the rest is overridden. */
export function withSettings(
  rendered: GenerateOptions,
  { instructions, config, output, toolChoice }: TurnSettings = {},
): GenerateOptions {
  const system = rendered.system === undefined ? [] : toParts(rendered.system);
  return {
    ...rendered,
    ...(instructions !== undefined && { system: [...system, { text: instructions }] }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(config && { config: { ...rendered.config, ...config } }),
    ...(output && {
      output: output.schema
        ? { schema: untrustedSchema(output.schema) }
        : { format: 'json' as const },
    }),
  };
}
