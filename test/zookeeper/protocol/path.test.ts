import { describe, expect, test } from 'vitest'
import { InvalidArgument } from '../../../src/core/errors.ts'
import { Chroot, checkPath, listAncestors } from '../../../src/zookeeper/protocol/path.ts'

describe('a path', () => {
  test.each(['/', '/a', '/a/b.c', '/a/..b', '/ä/ß', '/a b', '/.trash'])('%j is fine', (path) => {
    checkPath(path)
  })

  test.each([
    '',
    'a',
    '/a/',
    '//',
    '/a//b',
    '/a/./b',
    '/..',
    '/a\u0000',
    '/a\n',
    '/\u007f',
    '/\ud83d\ude00',
    '/\ufff1',
  ])('%j is refused', (path) => {
    expect(() => checkPath(path)).toThrow(InvalidArgument)
  })

  test('may end in a slash where the server appends to it', () => {
    checkPath('/a/', { sequential: true })
    expect(() => checkPath('/a//', { sequential: true })).toThrow(InvalidArgument)
    expect(() => checkPath('//', { sequential: true })).toThrow(InvalidArgument)
  })

  test('has a lineage', () => {
    expect(listAncestors('/a/b/c')).toEqual(['/a', '/a/b', '/a/b/c'])
    expect(listAncestors('/')).toEqual([])
  })
})

describe('a chroot', () => {
  const chroot = new Chroot('/app/x')

  test('is put before the path of a request and taken from the path of an answer', () => {
    for (const path of ['/', '/a', '/app/x']) expect(chroot.toUserPath(chroot.toServerPath(path))).toBe(path)
    expect(chroot.toServerPath('/')).toBe('/app/x')
    expect(chroot.toServerPath('/a')).toBe('/app/x/a')
  })

  test('hides what is outside', () => {
    expect(chroot.toUserPath('/app')).toBeUndefined()
    expect(chroot.toUserPath('/app/xy')).toBeUndefined()
  })

  test.each(['', '/'])('%j is none', (root) => {
    expect(new Chroot(root).toServerPath('/a')).toBe('/a')
    expect(new Chroot(root).toUserPath('/a')).toBe('/a')
  })
})
