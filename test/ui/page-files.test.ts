/** The page and its files, as the server answers them. */
import { expect, test } from 'vitest'
import { PageFiles } from '../../src/ui/page-files.ts'
import { ORIGIN } from './client.ts'

const encode = (text: string) => new TextEncoder().encode(text)
const FILES = new PageFiles(
  new Map([
    [
      'app-1a.js',
      {
        type: 'text/javascript; charset=utf-8',
        bytes: encode('plain'),
        encoded: new Map([
          ['br', encode('b')],
          ['gzip', encode('g')],
        ]),
      },
    ],
    ['app-1a.css', { type: 'text/css; charset=utf-8', bytes: encode('plain'), encoded: new Map() }],
  ]),
  { script: 'app-1a.js', style: 'app-1a.css' },
)

const answer = (name: string, encodings = '') =>
  FILES.answer(name, new Request(`${ORIGIN}/`, { headers: { 'accept-encoding': encodings } }))

test.each([
  ['gzip, deflate, br', 'br', 'b'],
  ['gzip', 'gzip', 'g'],
  ['br;q=0, gzip', 'gzip', 'g'],
  ['', null, 'plain'],
  ['identity', null, 'plain'],
  ['brotli', null, 'plain'],
])('a browser that accepts %j gets %s', async (accepted, encoding, content) => {
  const { headers } = answer('app-1a.js', accepted)
  const found = answer('app-1a.js', accepted)
  expect([headers.get('content-encoding'), await found.text()]).toEqual([encoding, content])
  expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  expect(headers.get('vary')).toBe('Accept-Encoding')
})

test('a file that is not in the map is not found', () => {
  for (const name of ['app-1b.js', '../package.json', '__proto__', ''])
    expect(() => answer(name)).toThrow('no such file')
})

test('the page is written with the base that the browser needs, without inline scripts and styles', async () => {
  const page = FILES.page('../../', new Request(`${ORIGIN}/b/main/jobs`))
  const html = await page.text()
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect(html).toContain('<base href="../../">')
  expect(html).toContain('<script type="module" src="app-1a.js"></script>')
  expect(html).toContain('<link rel="stylesheet" href="app-1a.css">')
  expect(html).not.toMatch(/<style|style=|onload|<script>/)
  expect(html.indexOf('<base')).toBeLessThan(html.indexOf('<link'))
})

test('without a build there is a clear error', () => {
  expect(() => new PageFiles(new Map()).page('./', new Request(`${ORIGIN}/`))).toThrow(
    'dist/ui/page/manifest.json; npm run build makes them',
  )
})
