/** Each example of a pattern prints what is in its `output.txt`. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { beforeAll, expect, test } from 'vitest'
import { ensureBuilt, ROOT } from '../support/build.ts'

beforeAll(ensureBuilt)

test.each(['linear', 'unordered', 'graph-deciders', 'retry-back-off', 'resume-after-crash', 'suspend'])(
  'examples/%s prints what it says',
  async (name) => {
    const folder = join(ROOT, 'examples', name)
    const args = ['--import', 'tsx', join(folder, 'main.ts')]
    const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { cwd: ROOT })
    const expected = await readFile(join(folder, 'output.txt'), 'utf8')
    expect({ stdout, stderr }).toEqual({ stdout: expected, stderr: '' })
  },
)
