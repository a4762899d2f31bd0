// Makes a program of the packed Chromium that npm carries: `node inflate.mjs PACKED INTO`.

import { execFileSync } from 'node:child_process';
import { createReadStream, createWriteStream, rmSync } from 'node:fs';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createBrotliDecompress } from 'node:zlib';

const [packed, into] = process.argv.slice(2);

const inflate = (name, to, options) =>
  pipeline(createReadStream(join(packed, name)), createBrotliDecompress(), createWriteStream(to, options));

await inflate('chromium.br', join(into, 'chromium'), { mode: 0o755 });
// The libraries it needs, for machines without them.
const libraries = join(into, 'libraries.tar');
await inflate('al2023.tar.br', libraries);
execFileSync('tar', ['-xf', libraries, '-C', into]);
rmSync(libraries);
