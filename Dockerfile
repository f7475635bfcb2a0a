# The server, from the wheel:  make wheel && docker build -t evidex .
# A gallery and its pictures are mounted where they were indexed, and never written:
#   docker run --rm -p 127.0.0.1:8765:8765 -v /data/gallery:/gallery:ro -v /data/scenes:/data/scenes:ro evidex
# It also runs with --read-only --tmpfs /tmp. Any other verb: docker run … evidex search "a river" --gallery /gallery
FROM python:3.11.14-slim-bookworm

# What is compiled, and the page's thumbnails, may be written nowhere else.
ENV PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/tmp/evidex-kernels

COPY dist/evidex-*.whl constraints.txt /tmp/wheel/
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
RUN wheel=(/tmp/wheel/evidex-*.whl) \
    && pip install --no-cache-dir -c /tmp/wheel/constraints.txt "${wheel[0]}[fast]" \
    && rm -r /tmp/wheel \
    && useradd --uid 10001 --no-create-home evidex

USER 10001
EXPOSE 8765
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/ready', timeout=4)"]
ENTRYPOINT ["evidex"]
CMD ["serve", "--gallery", "/gallery", "--host", "0.0.0.0"]
