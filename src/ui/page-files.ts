/** The files of the page, as the build has made them: a map from names to contents, so that no path of a request reaches a file system. */
import { readFile } from 'node:fs/promises'
import { Refusal } from './problem.ts'

/** The folder next to this file, and the folder of the build, for a dashboard that is run from its sources. */
const FOLDERS = ['./page/', '../../dist/ui/page/'] as const

interface PageFile {
  readonly type: string
  readonly bytes: Uint8Array<ArrayBuffer>
  /** The compressed contents, by the name of the encoding. */
  readonly encoded: ReadonlyMap<string, Uint8Array<ArrayBuffer>>
}

const ENCODINGS = [
  { name: 'br', ending: '.br' },
  { name: 'gzip', ending: '.gz' },
] as const

const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
}

export class PageFiles {
  readonly #files: ReadonlyMap<string, PageFile>
  readonly #names: { readonly script: string; readonly style: string } | undefined

  constructor(files: ReadonlyMap<string, PageFile>, names?: { readonly script: string; readonly style: string }) {
    this.#files = files
    this.#names = names
  }

  has(name: string): boolean {
    return this.#files.has(name)
  }

  /** Answers with a file. Its name has a hash of its content, so it never changes. */
  answer(name: string, request: Request): Response {
    const file = this.#files.get(name)
    if (!file) throw new Refusal('NOT_FOUND', 'there is no such file')
    const accepted = (request.headers.get('accept-encoding') ?? '').toLowerCase()
    const found = ENCODINGS.find((one) => acceptsEncoding(accepted, one.name) && file.encoded.has(one.name))
    const bytes = (found && file.encoded.get(found.name)) ?? file.bytes
    const headers = {
      'Content-Type': file.type,
      'Content-Length': String(bytes.byteLength),
      'Cache-Control': 'public, max-age=31536000, immutable',
      Vary: 'Accept-Encoding',
      ...(found ? { 'Content-Encoding': found.name } : {}),
    }
    return new Response(request.method === 'HEAD' ? null : bytes, { headers })
  }

  /** Answers with the page. @param base the mount as the browser sees it, `../../` */
  page(base: string, request: Request): Response {
    if (!this.#names) {
      throw new Refusal(
        'NO_PAGE',
        'the files of the page are missing: dist/ui/page/manifest.json; npm run build makes them',
      )
    }
    const { script, style } = this.#names
    const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>jobboard</title>
<base href="${escapeHtml(base)}">
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${escapeHtml(style)}">
<script type="module" src="${escapeHtml(script)}"></script>
</head>
<body>
<div id="app"></div>
<noscript>This page needs JavaScript. The command line shows the same: jobboard info, jobboard jobs.</noscript>
</body>
</html>
`
    const headers = { 'Content-Type': 'text/html; charset=utf-8', 'Cache-Control': 'no-store' }
    return new Response(request.method === 'HEAD' ? null : html, { headers })
  }
}

/** Reads the files that the manifest names. Without a manifest there is no page, and the API works all the same. */
export async function loadPageFiles(): Promise<PageFiles> {
  for (const folder of FOLDERS) {
    const base = new URL(folder, import.meta.url)
    const manifest = await readIfThere(new URL('manifest.json', base))
    if (!manifest) continue
    const names = parseManifest(Buffer.from(manifest).toString('utf8'))
    const files = new Map<string, PageFile>()
    for (const name of new Set(Object.values(names))) {
      const file = await readPageFile(name, base)
      if (file) files.set(name, file)
    }
    return new PageFiles(files, names)
  }
  return new PageFiles(new Map())
}

function parseManifest(
  text: string,
): { readonly script: string; readonly style: string } & Readonly<Record<string, string>> {
  const manifest: Readonly<Record<string, unknown>> = Object(JSON.parse(text))
  const names = Object.entries(manifest).filter(
    ([, name]) => typeof name === 'string' && /^[\w-]+(\.[\w-]+)+$/.test(name),
  )
  const { script, style, ...others }: Record<string, string> = Object.fromEntries(names as [string, string][])
  if (script === undefined || style === undefined)
    throw new Refusal('NO_PAGE', 'the manifest of the page names no script or no style: build the package again')
  return { ...others, script, style }
}

async function readPageFile(name: string, base: URL): Promise<PageFile | undefined> {
  const bytes = await readIfThere(new URL(name, base))
  if (!bytes) return undefined
  const encoded = new Map<string, Uint8Array<ArrayBuffer>>()
  for (const encoding of ENCODINGS) {
    const compressed = await readIfThere(new URL(`${name}${encoding.ending}`, base))
    if (compressed) encoded.set(encoding.name, compressed)
  }
  const type = TYPES[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream'
  return { type, bytes, encoded }
}

async function readIfThere(url: URL): Promise<Uint8Array<ArrayBuffer> | undefined> {
  try {
    return new Uint8Array(await readFile(url))
  } catch (error) {
    if (Object(error).code === 'ENOENT') return undefined
    throw error
  }
}

function acceptsEncoding(accepted: string, name: string): boolean {
  return accepted.split(',').some((part) => {
    const [coding = '', ...parameters] = part.split(';').map((text) => text.trim())
    return coding === name && !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter))
  })
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)
}
