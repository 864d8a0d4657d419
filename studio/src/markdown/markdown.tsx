import type { Token, Tokens } from 'marked';
import { Fragment, memo, type ReactNode } from 'react';
import { CodeBlock } from '../ui/code-block.tsx';
import { TableFrame } from '../ui/table-frame.tsx';
import { imageView, isWebAddress } from './addresses.tsx';
import { known, parseBlocks } from './parse.ts';

/** A Markdown text as elements. Nothing in it can become markup, run, or be fetched from elsewhere. */
export function Markdown({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="markdown">
      {parseBlocks(text).map((token, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block is known by its place; the text only grows
        <TopBlock key={at} token={token} />
      ))}
    </div>
  );
}

/** While an answer streams in, only the block that grows is drawn again. */
const TopBlock = memo(
  function TopBlock({ token }: { readonly token: Token }) {
    return view(token, 0);
  },
  (before, now) => before.token.raw === now.token.raw && before.token.type === now.token.type,
);

/** How deep elements nest; what is deeper is text. */
const deepest = 30;

function view(each: Token, depth: number): ReactNode {
  if (depth > deepest) return <p dir="auto">{each.raw}</p>;
  const token = known(each);
  const inside = (tokens: readonly Token[]): ReactNode => views(tokens, depth + 1);
  switch (token.type) {
    case 'paragraph':
      return <p dir="auto">{inside(token.tokens)}</p>;
    case 'heading':
      // A message is not part of the page outline, so its headings differ only in style.
      return (
        <div className={`heading h${token.depth}`} dir="auto">
          {inside(token.tokens)}
        </div>
      );
    case 'code':
      return <CodeBlock text={token.text} language={token.lang?.split(/\s/, 1)[0] ?? ''} />;
    case 'blockquote':
      return <blockquote>{inside(token.tokens)}</blockquote>;
    case 'list':
      return <ListView token={token} depth={depth} />;
    case 'table':
      return <TableView token={token} depth={depth} />;
    case 'hr':
      return <hr />;
    case 'html':
      return token.block ? plainText(token.raw) : token.raw;
    case 'text':
      if (token.tokens) return inside(token.tokens);
      return depth === 0 ? plainText(token.raw) : token.text;
    case 'escape':
      return token.text;
    case 'codespan':
      return <code>{token.text}</code>;
    case 'strong':
      return <strong>{inside(token.tokens)}</strong>;
    case 'em':
      return <em>{inside(token.tokens)}</em>;
    case 'del':
      return <del>{inside(token.tokens)}</del>;
    case 'br':
      return <br />;
    case 'link':
      return isWebAddress(token.href) ? (
        <a href={token.href} target="_blank" rel="noopener noreferrer">
          {inside(token.tokens)}
        </a>
      ) : (
        <span title={token.href}>{token.autolink ? token.raw : inside(token.tokens)}</span>
      );
    case 'image':
      return imageView(token.href, token.text);
    case 'checkbox':
      return token.checked ? '☑ ' : '☐ ';
    // List items are drawn by their list; definitions are not to be seen.
    case 'list_item':
    case 'def':
    case 'space':
      return null;
  }
}

function views(tokens: readonly Token[], depth: number): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: a token is known by its place
  return tokens.map((token, at) => <Fragment key={at}>{view(token, depth)}</Fragment>);
}

function plainText(text: string): ReactNode {
  return (
    <p className="plain-text" dir="auto">
      {text}
    </p>
  );
}

function ListView({
  token: { items, ordered, start },
  depth,
}: {
  readonly token: Tokens.List;
  readonly depth: number;
}): ReactNode {
  const list = items.map((item, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: an item is known by its place
    <li key={at} dir="auto">
      {views(item.tokens, depth + 1)}
    </li>
  ));
  return ordered ? <ol start={start === '' ? 1 : start}>{list}</ol> : <ul>{list}</ul>;
}

function TableView({
  token: { header, rows },
  depth,
}: {
  readonly token: Tokens.Table;
  readonly depth: number;
}): ReactNode {
  const cells = (row: readonly Tokens.TableCell[], Cell: 'th' | 'td'): ReactNode =>
    row.map(({ tokens, align }, at) => (
      // biome-ignore lint/suspicious/noArrayIndexKey: a cell is known by its place
      <Cell key={at} {...(align && { className: `align-${align}` })} dir="auto">
        {views(tokens, depth + 1)}
      </Cell>
    ));
  return (
    <TableFrame label="Table">
      <table>
        <thead>
          <tr>{cells(header, 'th')}</tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
            <tr key={at}>{cells(row, 'td')}</tr>
          ))}
        </tbody>
      </table>
    </TableFrame>
  );
}
