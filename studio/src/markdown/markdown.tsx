import { Fragment, memo, type ReactNode } from 'react';
import { CodeBlock } from '../ui/code-block.tsx';
import { type Block, parseBlocks, type SourceBlock } from './blocks.ts';
import { type Inline, parseInline } from './inline.ts';

/** A Markdown text as elements. Nothing in it can become markup, run, or be fetched from elsewhere. */
export function Markdown({ text }: { readonly text: string }): ReactNode {
  return (
    <div className="markdown">
      {parseBlocks(text).map((source, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: a block is known by its place; the text only grows
        <TopBlock key={at} source={source} />
      ))}
    </div>
  );
}

/** While an answer streams in, only the block that grows is drawn again. */
const TopBlock = memo(
  function TopBlock({ source }: { readonly source: SourceBlock }) {
    return <BlockView block={source.block} />;
  },
  (before, now) => before.source.source === now.source.source,
);

function BlockView({ block }: { readonly block: Block }): ReactNode {
  switch (block.type) {
    case 'paragraph':
      return <p dir="auto">{inline(block.text)}</p>;
    case 'heading':
      // A message is not part of the page outline, so its headings differ only in style.
      return (
        <div className={`heading h${block.level}`} dir="auto">
          {inline(block.text)}
        </div>
      );
    case 'code':
      return <CodeBlock text={block.text} language={block.language} />;
    case 'quote':
      return <blockquote>{blocks(block.blocks)}</blockquote>;
    case 'list':
      return <ListView block={block} />;
    case 'table':
      return <TableView block={block} />;
    case 'rule':
      return <hr />;
  }
}

function ListView({ block }: { readonly block: Extract<Block, { type: 'list' }> }): ReactNode {
  const items = block.items.map((item, at) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: an item is known by its place
    <li key={at} dir="auto">
      {item.length === 1 && item[0]?.type === 'paragraph' ? inline(item[0].text) : blocks(item)}
    </li>
  ));
  return block.start === undefined ? <ul>{items}</ul> : <ol start={block.start}>{items}</ol>;
}

function TableView({ block }: { readonly block: Extract<Block, { type: 'table' }> }): ReactNode {
  const { head, align, rows } = block;
  const cell = (at: number): { className?: string } =>
    align[at] ? { className: `align-${align[at]}` } : {};
  return (
    <div className="table-frame">
      <table>
        <thead>
          <tr>
            {head.map((text, at) => (
              // biome-ignore lint/suspicious/noArrayIndexKey: a cell is known by its place
              <th key={at} {...cell(at)} dir="auto">
                {inline(text)}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, at) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: a row is known by its place
            <tr key={at}>
              {row.map((text, column) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: a cell is known by its place
                <td key={column} {...cell(column)} dir="auto">
                  {inline(text)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function blocks(list: readonly Block[]): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: a block is known by its place
  return list.map((block, at) => <BlockView key={at} block={block} />);
}

function inline(text: string): ReactNode {
  return nodes(parseInline(text));
}

function nodes(list: readonly Inline[]): ReactNode {
  // biome-ignore lint/suspicious/noArrayIndexKey: a piece of text is known by its place
  return list.map((node, at) => <Fragment key={at}>{nodeView(node)}</Fragment>);
}

function nodeView(node: Inline): ReactNode {
  switch (node.type) {
    case 'text':
      return node.text;
    case 'code':
      return <code>{node.text}</code>;
    case 'strong':
      return <strong>{nodes(node.content)}</strong>;
    case 'em':
      return <em>{nodes(node.content)}</em>;
    case 'del':
      return <del>{nodes(node.content)}</del>;
    case 'break':
      return <br />;
    case 'link':
      return isWebAddress(node.url) ? (
        <a href={node.url} target="_blank" rel="noopener noreferrer">
          {nodes(node.content)}
        </a>
      ) : (
        <span title={node.url}>{nodes(node.content)}</span>
      );
    case 'image':
      return imageView(node.url, node.alt);
  }
}

// A picture from elsewhere would tell its server who is reading; it is offered as a link instead.
function imageView(url: string, alt: string): ReactNode {
  if (/^data:image\/[\w.+-]+[;,]/i.test(url)) return <img src={url} alt={alt} />;
  if (!isWebAddress(url)) return alt;
  return (
    <a href={url} target="_blank" rel="noopener noreferrer">
      Picture: {alt || url}
    </a>
  );
}

function isWebAddress(url: string): boolean {
  return /^(?:https?:\/\/|mailto:)/i.test(url);
}
