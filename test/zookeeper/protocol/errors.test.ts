import { describe, expect, test } from 'vitest'
import { JobboardError } from '../../../src/core/errors.ts'
import * as errors from '../../../src/zookeeper/protocol/errors.ts'

const { toError: errorOfCode, ZooKeeperError } = errors

describe('an error of ZooKeeper', () => {
  test.each([
    [-101, errors.NoNode, 'refused'],
    [-102, errors.NoAuth, 'refused'],
    [-103, errors.BadVersion, 'refused'],
    [-108, errors.NoChildrenForEphemerals, 'refused'],
    [-110, errors.NodeExists, 'refused'],
    [-111, errors.NotEmpty, 'refused'],
    [-112, errors.SessionExpired, 'refused'],
    [-114, errors.InvalidAcl, 'refused'],
    [-115, errors.AuthFailed, 'refused'],
    [-118, errors.SessionMoved, 'refused'],
    [-119, errors.ReadOnlyServer, 'refused'],
    [-6, errors.Unimplemented, 'refused'],
    [-8, errors.BadArguments, 'refused'],
    [-13, errors.ReconfigRefused, 'refused'],
    [-14, errors.ReconfigRefused, 'refused'],
    [-123, errors.ReconfigRefused, 'refused'],
    [-120, errors.EphemeralOnLocalSession, 'refused'],
    [-121, errors.NoWatcher, 'refused'],
    [-124, errors.AuthFailed, 'refused'],
    [-122, ZooKeeperError, 'unknown'],
    [-125, errors.QuotaExceeded, 'refused'],
    [-127, errors.Throttled, 'refused'],
    [-1, ZooKeeperError, 'unknown'],
    [-999, ZooKeeperError, 'refused'],
    [17, ZooKeeperError, 'unknown'],
  ])('of code %i has a class and an outcome', (code, type, outcome) => {
    const error = errorOfCode(code, { operation: 'delete', path: '/a' })
    expect(error).toBeInstanceOf(type)
    expect(error).toMatchObject({ zkCode: code, outcome, path: '/a', name: type.name })
    expect(error.message).toContain('delete /a')
  })

  test.each([
    ['create', '/a/b', 'create /a/b: its parent /a does not exist; create it with mkdirp'],
    ['create', '/a', "create /a: the chroot of this client does not exist; create it with mkdirp('/')"],
    ['getData', '/', "getData /: the chroot of this client does not exist; create it with mkdirp('/')"],
    ['getData', '/a/b', 'getData /a/b: there is no such znode'],
  ])('names the znode that is missing, of a %s of %s', (operation, path, message) => {
    const error = errorOfCode(-101, { operation, path })
    expect(error).toMatchObject({ message, path })
    expect(errorOfCode(-101, { operation, path, index: 1 }).message).toBe(`${message} (operation 1 of a multi)`)
  })

  test.each([
    ['getData', -122, { again: true }, true],
    ['getData', -122, { again: false }, false],
    ['getData', -1, { again: true }, true],
    ['setData', -122, { again: true }, false],
    ['setData', -112, { again: true, anew: true }, true],
    ['getData', -112, { again: true, anew: false }, false],
    ['getData', -101, { again: true, anew: true }, false],
    ['setData', -127, {}, true],
    ['setData', -119, {}, true],
    ['reconfig', -14, {}, true],
    ['reconfig', -13, {}, true],
    ['reconfig', -123, {}, false],
  ])('of a %s, code %i, says whether to ask again (%j)', (operation, code, prospects, retryable) => {
    expect(errorOfCode(code, { operation }, prospects)).toMatchObject({ retryable })
  })

  test('of each meaning has a code of its own', () => {
    const classes = Object.values(errors).filter(
      (value) => typeof value === 'function' && value.prototype instanceof Error,
    )
    const codes = classes.map((type) => (type as typeof ZooKeeperError).code)
    expect(classes.length).toBeGreaterThan(15)
    expect(new Set(codes).size).toBe(classes.length)
  })

  test('is an error of ours and of no other meaning', () => {
    const error = errorOfCode(-101, { operation: 'exists' })
    expect(error).toBeInstanceOf(JobboardError)
    expect(error).not.toBeInstanceOf(errors.NodeExists)
    expect(new errors.ConnectionLoss('x').outcome).toBe('unknown')
    expect(new errors.NotSent('x').outcome).toBe('not-sent')
  })
})
