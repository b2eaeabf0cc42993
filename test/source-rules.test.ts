/** Checks rules of `src/` that hold for single calls and expressions, by its syntax. The page in the browser has its own. */
import { readdirSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import ts from 'typescript'
import { expect, test } from 'vitest'

const SOURCE = resolve(import.meta.dirname, '../src')
const files = readdirSync(SOURCE, { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.ts') && !name.startsWith('ui/page/'))
  .map((name) => ({ name, text: readFileSync(resolve(SOURCE, name), 'utf8') }))

/** Returns the places, as `file:line`, of the nodes for which the rule is broken; only files with the word are read. */
function breaches(word: string, isBroken: (node: ts.Node) => boolean, home: string): string[] {
  const found: string[] = []
  for (const { name, text } of files.filter((file) => file.name !== home && file.text.includes(word))) {
    const source = ts.createSourceFile(name, text, ts.ScriptTarget.Latest, true)
    const visit = (node: ts.Node): void => {
      if (isBroken(node)) found.push(`${name}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}`)
      ts.forEachChild(node, visit)
    }
    visit(source)
  }
  return found
}

/** Returns whether the delay is bounded by what the source says: a number, a constant such as `PERIOD_MS`, or the smaller of one and something else. */
function isBounded(delay: ts.Expression | undefined): boolean {
  if (!delay) return false
  if (ts.isNumericLiteral(delay)) return true
  if (ts.isCallExpression(delay)) return delay.expression.getText() === 'Math.min' && delay.arguments.some(isBounded)
  return /^[A-Z][A-Z0-9_]+(\.\w+)?$/.test(delay.getText())
}

test.each(['setTimeout', 'setInterval'])(
  '%s waits for a constant time, everything else goes through startTimer',
  (timer) => {
    const isBroken = (node: ts.Node) =>
      ts.isCallExpression(node) && node.expression.getText() === timer && !isBounded(node.arguments[1])
    expect(breaches(`${timer}(`, isBroken, 'core/time.ts')).toEqual([])
  },
)

test('AbortSignal.timeout waits for a constant time, everything else goes through timeoutSignal', () => {
  const isBroken = (node: ts.Node) =>
    ts.isCallExpression(node) && node.expression.getText() === 'AbortSignal.timeout' && !isBounded(node.arguments[0])
  expect(breaches('AbortSignal.timeout(', isBroken, 'core/time.ts')).toEqual([])
})

test('nothing but sleep uses the timers of node:timers', () => {
  const isBroken = (node: ts.Node) =>
    ts.isImportDeclaration(node) &&
    /'(node:)?timers/.test(node.moduleSpecifier.getText()) &&
    /\bset(Timeout|Interval)\b/.test(node.getText())
  expect(breaches('timers', isBroken, 'core/time.ts')).toEqual([])
})

test('errors are recognised by isError, which knows those of other realms', () => {
  const isBroken = (node: ts.Node) =>
    ts.isBinaryExpression(node) &&
    node.operatorToken.kind === ts.SyntaxKind.InstanceOfKeyword &&
    /^(Error|AggregateError|TypeError|RangeError)$/.test(node.right.getText())
  expect(breaches('instanceof', isBroken, 'core/errors.ts')).toEqual([])
})
