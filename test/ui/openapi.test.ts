/** The description of the API says all of it, and nothing else. Answers are checked by the same schemas in every test: `client.ts`. */
import { expect, test } from 'vitest'
import { openBoard } from '../../src/board/index.ts'
import { ROUTES } from '../../src/ui/api/routes.ts'
import { openClient } from './client.ts'

interface Operation {
  readonly operationId: string
  readonly parameters: readonly { readonly name: string; readonly in: string; readonly required: boolean }[]
  readonly requestBody?: { readonly content: Record<string, { readonly schema: Record<string, unknown> }> }
  readonly responses: Record<string, { readonly content: Record<string, { readonly schema: Record<string, unknown> }> }>
}

interface Description {
  readonly openapi: string
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, unknown> }
}

test('every route is described, with its parameters, its body and its answer', async () => {
  await using board = await openBoard('memory:')
  await using client = openClient({ board })
  const { status, body } = await client.get<Description>('/openapi.json')
  expect([status, body.openapi]).toEqual([200, '3.1.0'])
  const described = Object.entries(body.paths).flatMap(([path, operations]) => {
    return Object.keys(operations).map((method) => `${method.toUpperCase()} ${path}`)
  })
  const routes = ROUTES.map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, '{$1}')}`)
  expect(described.sort()).toEqual([...routes].sort())
  const operations = Object.values(body.paths).flatMap((methods) => Object.values(methods))
  expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length)
  for (const { operationId, parameters, responses, requestBody } of operations) {
    expect(responses['default']?.content['application/json']?.schema, operationId).toEqual({
      $ref: '#/components/schemas/Problem',
    })
    const json = responses['200']?.content['application/json']?.schema
    if (json) expect(json['type'], operationId).toBe('object')
    if (requestBody) expect(Object.keys(requestBody.content), operationId).toEqual(['application/json'])
    for (const parameter of parameters) expect(['path', 'query'], operationId).toContain(parameter.in)
  }
  const jobs = body.paths['/boards/{board}/jobs']?.['get']
  expect(jobs?.parameters.map(({ name, required }) => [name, required])).toEqual([
    ['board', true],
    ['q', false],
    ['after', false],
    ['limit', false],
  ])
  expect(body.components.schemas['Problem']).toMatchObject({ type: 'object', required: ['code', 'message'] })
})
