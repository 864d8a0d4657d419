import { strictEqual } from 'node:assert';
import { test } from 'node:test';
import { slug } from '../src/slug.ts';

test('joins words with hyphens', () => strictEqual(slug('My first post'), 'my-first-post'));
test('leaves out punctuation', () => strictEqual(slug('Hello, World!'), 'hello-world'));
test('has no hyphen at its ends', () => strictEqual(slug('  Two  spaces '), 'two-spaces'));
