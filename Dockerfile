# One image for every worker; which queues a container serves is its command.
# Any image with Python 3.11 and pip as `python` and `pip` will do.
ARG BASE=python:3.11-slim
FROM ${BASE}

ENV PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

RUN useradd --create-home --uid 10001 communitree
WORKDIR /app

# First what changes seldom: the pinned packages.
COPY pyproject.toml constraints.txt README.md CHANGELOG.md ./
COPY producer/LICENSE producer/LICENSE
COPY shared/LICENSE shared/LICENSE
COPY workers/LICENSE workers/LICENSE
RUN mkdir -p shared/communitree_shared producer/communitree workers/communitree_workers \
    && touch shared/communitree_shared/__init__.py producer/communitree/__init__.py workers/communitree_workers/__init__.py \
    && pip install --constraint constraints.txt '.[workers,documents]' cryptography \
    && pip uninstall --yes communitree

COPY shared shared
COPY producer producer
COPY workers workers
RUN pip install --constraint constraints.txt '.[workers,documents]' cryptography

# Both for a root that cannot be written: the vocabulary that tokens are counted with, a folder for temporary files.
ENV TIKTOKEN_CACHE_DIR=/usr/local/share/communitree/tiktoken
RUN python -c "from communitree_shared import tokens; tokens.encoding()" \
    && chmod -R a+rX $TIKTOKEN_CACHE_DIR \
    && install --directory --owner=communitree --group=communitree --mode=0700 /scratch

USER communitree
WORKDIR /home/communitree
# Worker containers stop on SIGTERM after what runs has ended (see stop_grace_period in docker-compose.yml).
ENTRYPOINT ["communitree"]
CMD ["worker", "models"]
