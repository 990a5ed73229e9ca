#!/usr/bin/env bash
# Fetches the jars of Apache Kafka with Maven, for tests without Docker, and prints where they are:
# $WEIR_KAFKA_HOME, or weir/kafka-<version> under the user's cache directory. Does nothing when they are there.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
version=$(sed -n 's:.*<kafka.version>\(.*\)</kafka.version>.*:\1:p' "$here/pom.xml")
home=${WEIR_KAFKA_HOME:-${XDG_CACHE_HOME:-$HOME/.cache}/weir/kafka-$version}

if [ ! -e "$home/kafka_2.13-$version.jar" ]; then
  # Filled beside its place and then moved there, because the tests of several packages may run this concurrently.
  mkdir -p "$(dirname "$home")"
  part=$(mktemp -d "$home.XXXXXX")
  trap 'rm -rf "$part"' EXIT
  mvn --batch-mode --quiet --file "$here/pom.xml" dependency:copy-dependencies \
    -DincludeScope=runtime -DoutputDirectory="$part" >&2
  chmod 755 "$part"
  [ -e "$home" ] || mv "$part" "$home"
  if [ ! -e "$home/kafka_2.13-$version.jar" ]; then
    echo "$home exists but does not hold Kafka $version: remove it and run this again" >&2
    exit 1
  fi
fi
echo "$home"
