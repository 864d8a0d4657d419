import type { MarkdownRenderer } from 'vitepress';

/** Shows `{{ }}` of texts and inline code as they are: VitePress would evaluate them as expressions of Vue. */
export function showBraces({ renderer, utils }: MarkdownRenderer): void {
  const escaped = (text: string): string =>
    utils.escapeHtml(text).replaceAll('{{', '&#123;&#123;').replaceAll('}}', '&#125;&#125;');
  renderer.rules.text = (tokens, at) => escaped(tokens[at]?.content ?? '');
  renderer.rules.code_inline = (tokens, at, _options, _env, { renderAttrs }) => {
    const token = tokens[at];
    return token ? `<code${renderAttrs(token)}>${escaped(token.content)}</code>` : '';
  };
}
